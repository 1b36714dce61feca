q () 
{ 
    timeout ${T:-25} $PY -m pytest evals -p no:cacheprovider -q --tb=no -n0 "$@" > out.log 2>&1;
    echo "## rc=$? : $*";
    cut -c1-230 out.log | grep -v -E '^(\.|=+ zoo|row |FAILED evals)' | tail -${N:-4}
}
