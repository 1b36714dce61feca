"""The words of the stories. In every list the earlier words are likelier: weights fall from 4 to 1.

Words of one list are prefix-free, so that a choice can be followed by any punctuation. `a:b` pairs give two forms.
"""


def listed(words: str) -> tuple[str, ...]:
    """Return the words of a block of text; an underscore stands for a space inside a word."""
    return tuple(word.replace("_", " ") for word in words.split())


def paired(words: str) -> tuple[tuple[str, str], ...]:
    """Return the `base:past` or `one:many` pairs of a block of text."""
    halves = [word.split(":") for word in listed(words)]
    return tuple((first, second) for first, second in halves)


SHE_NAMES = listed(
    """Mira Clara Rosa Nadia Ines Greta Lena Hanna Priya Yuki Zoe Amara Sofia Tilda Wanda Bella Elsa Fern"""
)
HE_NAMES = listed(
    "Tom Oskar Jonas Felix Ravi Pablo Kenji Hugo Dmitri Levi Marcus Nico Emil Bruno Samir Peter Viktor Gus"
)
THEY_NAMES = listed("""Robin Quinn Sasha Avery Wren Kit Indigo Morgan""")
VILLAGES = listed("""Alder_Bay Stonebridge Lower_Marsh Crow_Hill Port_Ellery Willowdale Northgate Fairhaven Oldcastle
    Briar_Cross Saltmere Kingsford Dunmoor Elmhurst Whitcliff Maple_Falls Harrow Tidewell Ravenscar Upper_Linden""")
TRADES = listed("""baker sailor weaver clockmaker gardener potter carpenter fisher painter miller tailor beekeeper
    shepherd blacksmith librarian cook postmaster glassblower locksmith musician soldier lawyer doctor dentist
    plumber farmer florist butcher barber judge mayor poet dancer juggler acrobat magician teacher nurse pilot
    captain""")
RELATIVES = listed("""grandmother uncle aunt cousin neighbor teacher grandfather older_brother sister godmother
    landlord stepfather""")

ADJECTIVES = listed("""red old small blue broken green heavy yellow painted shiny strange wooden enormous black
    white golden rusty ancient silver purple round dusty tiny curious crooked plain striped orange ugly elegant
    borrowed polished foreign empty spotted narrow humble pink secret expensive delicate faded magic bronze ivory
    cracked famous rare valuable gray sturdy fancy oval square violet copper iron brown stolen dented fragile sharp
    soft dirty clean folded woven huge worthless wet lucky noisy secondhand carved leather silk hollow woolen
    lopsided enchanted rotten sticky gilded""")
THINGS = listed("""kite lantern drum box map umbrella violin basket mirror clock book ladder whistle rope blanket
    bell key hammer telescope bucket chair pocketwatch compass feather flute letter puppet scarf mask teapot bottle
    hat wheel knife anchor saddle trumpet candle ring barrel spoon paintbrush necklace helmet broom coin shovel jar
    wagon pillow vase button saw guitar marble boat crown cushion needle oar pipe quilt rocket sled toolbox vest
    thimble portrait notebook jacket glove locket globe ribbon anvil dagger plate tray kettle lamp suitcase parasol
    statue fan whip harp cello shield sword crate banner tapestry curtain sofa stool desk table bench cradle doll
    sandal boot apron shirt belt sock coat trowel rake pickaxe chisel wrench padlock chain bolt net hook sail paddle
    canoe raft sundial hourglass quill inkwell envelope stamp poster sculpture wreath bracelet brooch goblet pitcher
    cup ladle sieve corkscrew grater microscope magnet thermometer prism tent""")
FOODS = listed("""bread soup cheese pie porridge cake rice honey stew pudding salad fish toast jam omelet pasta
    chowder gingerbread custard roast_beef dumplings mushrooms beans noodles pickles cabbage turnips chestnuts
    yogurt waffles trout sausage bacon ham oatmeal popcorn lasagna goulash curry risotto rhubarb spinach carrots
    potatoes lentils onions radishes cherries apricots raisins melon pancakes biscuits muffins pretzels sherbet
    nougat fudge marmalade mustard""")
FOOD_ADJECTIVES = listed("""warm hot cold fresh salty sweet burnt delicious leftover spicy sour simple buttered
    plain creamy excellent smoked bitter thick crisp greasy soggy moldy juicy frozen dry bland smelly crunchy tender
    peppery golden homemade steaming""")
ANIMALS = listed("""fox owl deer squirrel heron badger frog beetle swan hare crow otter wolf moth bear mouse sparrow
    lizard bat weasel toad crab spider eagle snail salmon turtle hornet lynx rat gull pigeon robin magpie stork
    crane falcon kingfisher woodpecker lark finch wren hen rooster duckling lamb calf colt piglet bull donkey camel
    ferret mole shrew mink stoat newt viper slug cricket ladybug dragonfly bumblebee""")
ANIMAL_ADJECTIVES = listed("""gray young hungry lame brown thin sleepy lonely clever wet silent fat wounded angry
    proud timid enormous old muddy elderly bold nervous white quick spotted striped shaggy blind tame wild stray
    limping plump fierce playful scruffy red pale trembling curious greedy silver""")
PLACES = listed("""mill river barn bridge market garden harbor school tower well church orchard forest lighthouse
    bakery inn cave meadow station library cellar pond fountain stable hill workshop attic cottage dock greenhouse
    windmill old_wall town_hall kitchen haystack quarry gate chapel ferry oak_tree beach woodshed vineyard theater
    crossroads swamp smithy post_office courtyard boathouse monument railway bus_stop museum prison bathhouse temple
    hospital palace shipyard sawmill dairy canal hedge pasture cornfield dam staircase kiosk ruins bell_tower
    trapdoor cliff waterfall island graveyard henhouse pigsty factory warehouse print_shop barbershop pharmacy
    playground sandpit fairground racetrack tunnel lake lagoon reef volcano canyon""")
COUNTED = paired("""apple:apples egg:eggs pear:pears coin:coins stone:stones shell:shells candle:candles
    ribbon:ribbons plum:plums ticket:tickets nail:nails cookie:cookies walnut:walnuts lemon:lemons acorn:acorns
    marble:marbles bean:beans fig:figs seed:seeds turnip:turnips feather:feathers map:maps jar:jars orange:oranges
    onion:onions pebble:pebbles button:buttons spoon:spoons carrot:carrots melon:melons tulip:tulips letter:letters
    biscuit:biscuits peach:peaches""")
CONTAINERS = listed("""basket pocket bag trunk drawer bowl bucket backpack cupboard satchel chest apron wagon barrel
    cabinet suitcase jar pouch crate tin wheelbarrow hat""")
NUMBERS = listed("""no one two three four five six seven eight nine ten eleven twelve""")
WEATHER = listed("""rain wind fog snow sunshine thunder frost heat""")
MONTHS = listed("""January February March April May June July August September October November December""")
HOURS = listed("""At_dawn At_nine At_noon By_teatime At_sunset By_evening At_midnight""")

USES = paired("""carry:carried clean:cleaned mend:mended paint:painted borrow:borrowed polish:polished draw:drew
    lift:lifted buy:bought sell:sold examine:examined drop:dropped admire:admired wrap:wrapped weigh:weighed
    hide:concealed break:smashed measure:measured bury:buried scrub:scrubbed copy:copied decorate:decorated
    open:opened unpack:unpacked drag:dragged kick:kicked study:studied repair:repaired design:designed
    protect:protected return:returned steal:stole balance:balanced throw:threw fill:filled turn:turned_over
    ignore:ignored order:ordered envy:envied praise:praised collect:collected label:labeled pack:packed lend:lent
    rent:rented sharpen:sharpened varnish:varnished wind:wound_up shake:shook bend:bent tie:tied_up stack:stacked
    inspect:inspected test:tested lock:locked unlock:unlocked oil:oiled raise:raised lower:lowered guard:guarded
    trade:traded wear:wore_out pawn:pawned donate:donated choose:chose invent:invented build:built carve:carved
    sew:sewed tear:tore flatten:flattened burn:burned rinse:rinsed misplace:misplaced replace:replaced
    remember:remembered mention:mentioned describe:described forge:forged earn:earned auction:auctioned hang:hung_up
    pull:pulled push:pushed hold:held touch:touched kiss:kissed dust:dusted adjust:adjusted""")
EATS = paired("""eat:ate cook:cooked taste:tasted share:shared bring:brought smell:smelled serve:served make:made
    refuse:refused warm_up:warmed_up spill:spilled spoil:spoiled offer:offered finish:finished enjoy:enjoyed
    season:seasoned nibble:nibbled devour:devoured fry:fried boil:boiled roast:roasted slice:sliced freeze:froze
    gulp:gulped toast:toasted stir:stirred swallow:swallowed chew:chewed pour:poured_out salt:salted grill:grilled
    mix:mixed munch:munched""")
WATCHES = paired("""watch:watched follow:followed chase:chased feed:fed rescue:rescued hear:heard
    frighten:frightened sketch:sketched notice:noticed call:called catch:caught imitate:imitated greet:greeted
    photograph:photographed tame:tamed warn:warned count:counted hunt:hunted pet:petted track:tracked
    startle:startled adopt:adopted release:released spot:spotted shoo:shooed lure:lured trap:trapped train:trained
    observe:observed scold:scolded soothe:soothed wake:woke hug:hugged""")
RESTS = paired("""sing:sang wait:waited sleep:slept laugh:laughed work:worked rest:rested dance:danced read:read
    whistle:whistled dream:dreamed cry:cried stand:stood_still knit:knitted argue:argued pray:prayed juggle:juggled
    sit_down:sat_down shiver:shivered yawn:yawned listen:listened hum:hummed kneel:knelt exercise:exercised
    swim:swam smile:smiled nap:napped pause:paused gossip:gossiped meditate:meditated cough:coughed sneeze:sneezed
    bow:bowed stumble:stumbled faint:fainted relax:relaxed play:played worry:worried complain:complained
    vanish:vanished leave:left shout:shouted giggle:giggled fidget:fidgeted practice:practiced""")
MOVES = paired("""walk:walked run:ran hurry:hurried head:headed stroll:strolled ride:rode race:raced creep:crept
    wander:wandered march:marched climb:climbed limp:limped skip:skipped sneak:sneaked trudge:trudged
    gallop:galloped dash:dashed travel:traveled sail:sailed row:rowed jog:jogged swing:swung hike:hiked cycle:cycled
    drift:drifted stagger:staggered rush:rushed crawl:crawled tiptoe:tiptoed sprint:sprinted""")
ADVERBS = listed("""quietly slowly carefully happily suddenly proudly often gently secretly bravely eagerly sadly
    quickly cheerfully nervously patiently almost never politely lazily angrily gladly clumsily finally reluctantly
    solemnly thoughtfully immediately once_again boldly awkwardly calmly slyly bitterly briefly cautiously daily
    eventually faithfully foolishly generously hastily humbly innocently joyfully kindly loudly merrily neatly
    noisily obediently openly playfully promptly rarely rudely seldom shyly sternly stubbornly swiftly tenderly
    twice warily weakly wisely absentmindedly""")
FEELINGS = listed("""happy tired hungry proud worried sad curious cold afraid lonely angry bored excited nervous
    glad grateful surprised thirsty jealous sleepy confused restless sorry ashamed impatient brave cheerful dizzy
    homesick embarrassed relieved amused anxious bitter calm careful certain clumsy content desperate disappointed
    doubtful eager famous fearless fine furious gloomy guilty hopeful ill innocent late lost lucky miserable moody
    offended peaceful puzzled quiet relaxed rich safe satisfied shy silent sick stunned tense thankful thrilled
    uneasy upset weary""")
SPEECH = listed("""said whispered shouted called replied cried muttered answered sighed laughed added explained
    announced murmured insisted joked""")
NEARNESS = listed("""near behind beside outside past opposite beyond below""")
HIDING = listed("""behind under near inside beneath beside""")
MANNERS = listed("""for_an_hour all_day until_dark before_lunch until_midnight before_breakfast for_two_days
    after_school before_sunrise for_half_the_night until_supper for_a_week every_summer for_a_few_minutes
    after_church with_great_care in_silence without_a_word by_candlelight with_both_hands in_a_hurry for_no_reason
    as_usual on_tiptoe at_once with_a_smile by_mistake out_of_kindness like_a_dancer in_the_shade
    against_all_advice alone""")
CONNECTORS = listed("""Then Soon Later Next, Meanwhile, At_last, Again, Today, Once, By_chance, Before_long, Still,
    As_always, Suddenly, Afterward,""")
SCENERY = listed("""Nearby, Overhead, Somewhere Outside, Far_away, Upstairs, Next_door, Below,""")
BEASTLY = listed("""barked howled scratched stirred slept waited called hissed watched splashed rustled appeared
    rested hunted yawned limped sang jumped drank crouched vanished circled purred growled sneezed trembled dozed
    nested burrowed flew_up landed swam ate froze danced ran chirped squealed snored wandered climbed lingered
    cowered""")
EXCLAMATIONS = listed("""Look Listen Wonderful Goodness Quick Careful Never_mind Enough Hello Heavens""")
QUALITIES = listed("""kind clever quiet stubborn generous brave careless honest funny shy lazy polite serious
    hopeful noisy gentle forgetful wise ambitious thrifty cunning daring dreamy fussy greedy harmless loyal modest
    nimble reckless silly sleepy tall rich handsome bald lonely cranky""")

RAINS = {
    "rain": listed("""fell_harder drummed_on_roofs made_mud filled_every_ditch never_let_up leaked_in soaked_the_hay
        beat_down tapped_on_the_glass turned_cold"""),
    "wind": listed("""howled_in_the_chimneys grew_stronger bent_the_trees slammed_a_door tore_at_the_flags sang
        scattered_the_leaves took_a_hat changed died_down"""),
    "fog": listed("""hid_the_road grew_thicker rolled_over_the_fields swallowed_the_roofs crept_in tasted_of_salt
        clung_to_the_hedges lifted_a_little muffled_the_bells would_not_clear"""),
    "snow": listed("""covered_the_fields kept_falling lay_deep muffled_every_sound piled_up_at_the_doors squeaked
        blocked_the_road shone began_to_melt turned_gray"""),
    "sunshine": listed("""warmed_the_stones dried_the_laundry sparkled_on_the_water lit_up_the_windows felt_wonderful
        bleached_the_sheets faded woke_the_bees lasted ripened_the_grapes"""),
    "thunder": listed("""rolled_over_the_hills shook_the_windows scared_the_horses came_closer growled_far_away
        drowned_every_word rumbled_on woke_the_baby boomed_twice went_silent"""),
    "frost": listed("""glittered cracked_the_pots painted_the_windows bit_at_the_leaves froze_the_puddles
        whitened_the_grass killed_the_roses crunched_underfoot stayed made_the_steps_slippery"""),
    "heat": listed("""shimmered made_everyone_slow wilted_the_flowers baked_the_clay melted_the_butter soured_the_milk
        emptied_the_streets hung_in_the_air dried_the_wells would_not_break"""),
}
