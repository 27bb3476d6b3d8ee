export interface Emoji {
  emoji: string;
  name: string;
  /** The words that it is found by, including its name. */
  words: string;
}

export interface EmojiCategory {
  title: string;
  /** The emoji that represents the category. */
  sign: string;
  emojis: readonly Emoji[];
}

/** «😀 grin, happy; 😃 smile»: the first word after an emoji is its name. */
function category(title: string, list: string): EmojiCategory {
  const emojis = list.split(";").map((entry) => {
    const [emoji = "", ...rest] = entry.trim().split(" ");
    const words = rest.join(" ");
    return { emoji, name: words.split(",")[0] ?? "", words };
  });
  return { title, sign: emojis[0]?.emoji ?? "", emojis };
}

/** Common emoji that current systems can display. */
export const emojiCategories: readonly EmojiCategory[] = [
  category(
    "Smileys",
    `😀 grinning, happy; 😃 smiley, happy; 😄 grin, happy, smile; 😁 beaming, teeth;
    😆 laughing, haha; 😅 sweat smile, phew, relief; 🤣 rolling on the floor, laugh, rofl;
    😂 tears of joy, laugh, lol, funny; 🙂 slight smile; 🙃 upside down, irony; 😉 wink;
    😊 blush, happy, smile; 😇 angel, innocent; 🥰 loving, hearts; 😍 heart eyes, love;
    🤩 star struck, wow; 😘 kiss; 😋 yum, delicious; 😛 tongue; 😜 crazy, wink, tongue;
    🤪 zany, goofy; 🤑 money face; 🤗 hug; 🤭 giggle, oops; 🤫 quiet, shush, secret;
    🤔 thinking, hmm; 🫡 salute, yes; 🤐 zipped, silent; 🤨 raised eyebrow, doubt;
    😐 neutral; 😑 expressionless; 😶 speechless; 🫥 invisible, dotted; 😏 smirk;
    😒 unamused; 🙄 eye roll; 😬 grimace, awkward; 😮‍💨 sigh, exhale, relief; 🤥 lying;
    😌 relieved, calm; 😔 pensive, sad; 😪 sleepy; 🤤 drool; 😴 sleep, tired, zzz;
    😷 mask, ill; 🤒 fever, ill; 🤕 hurt, bandage; 🤢 sick, nausea; 🤧 sneeze, cold;
    🥵 hot, heat; 🥶 freezing, cold; 🥴 woozy, dizzy; 😵‍💫 spinning, dizzy;
    🤯 mind blown, exploding; 🤠 cowboy; 🥳 partying face, celebrate; 🥸 disguise;
    😎 cool, sunglasses; 🤓 nerd, glasses; 🧐 monocle, inspect; 😕 confused; 🫤 diagonal mouth, meh;
    😟 worried; 🙁 slight frown; 😮 surprised, wow, oh; 😲 astonished; 😳 flushed, embarrassed;
    🥺 pleading, please, puppy eyes; 🥹 holding back tears, moved; 😨 fearful; 😰 anxious;
    😥 disappointed, phew; 😢 cry, sad; 😭 sob, cry, sad; 😱 scream, fear; 😖 confounded;
    😣 persevering; 😞 sad, disappointed; 😓 downcast, sweat; 😩 weary; 😫 exhausted, tired;
    🥱 yawn, bored; 😤 triumph, steam; 😡 angry, mad, rage; 🤬 swearing; 😈 devil; 💀 skull, dead;
    💩 poop; 🤡 clown; 👻 ghost; 👽 alien; 🤖 robot, bot, agent; 🎃 pumpkin, halloween`,
  ),
  category(
    "People",
    `👍 thumbs up, yes, ok, agree; 👎 thumbs down, no, disagree; 👏 clap, bravo;
    🙌 raised hands, hooray; 🫶 heart hands, love; 🤝 handshake, deal, agree;
    🙏 thank you, please, pray; 👌 ok hand, perfect; 🤌 pinched fingers; 🤏 small, pinch;
    ✌️ victory, peace; 🤞 fingers crossed, luck; 🫰 snap, love; 🤟 love you; 🤘 rock on;
    🤙 call me, shaka; 👈 left, point; 👉 right, point; 👆 up, point, this; 👇 down, point;
    ☝️ index finger, first; ✋ stop, hand, high five; 🖐️ hand, five; 👋 wave, hello, bye;
    💪 strong, muscle; 🦾 robot arm; ✍️ writing; 👀 eyes, look, see; 🧠 brain, mind, smart;
    🫀 heart organ; 👂 ear, listen; 👃 nose; 👄 mouth; 🦷 tooth; 🗣️ speaking; 👤 silhouette;
    👥 people, group; 🫂 hugging, comfort; 👶 baby; 🧒 child; 🧑 person; 👩 woman; 👨 man;
    🧓 older person; 🙋 raising hand, me, question; 🙅 no way, refuse; 🙆 all fine; 🤷 shrug, dunno;
    🤦 facepalm; 🙇 bow, sorry; 💁 information, tip; 🧑‍💻 developer, code, laptop; 🧑‍🔬 scientist;
    🧑‍🎨 artist; 🧑‍🚀 astronaut; 🧑‍🏫 teacher; 🧑‍⚖️ judge; 🧑‍🍳 cook; 🧑‍🔧 mechanic;
    🕵️ detective; 💂 guard; 🥷 ninja; 👷 builder, construction; 🦸 hero; 🧙 wizard, magic;
    🧟 zombie; 🏃 run; 🚶 walk; 🧘 meditate, calm; 🛌 in bed, sleep; 💃 dance; 🕺 disco, dance;
    👪 family; 👣 footprints`,
  ),
  category(
    "Hearts and marks",
    `❤️ heart, love; 🧡 orange heart; 💛 yellow heart; 💚 green heart; 💙 blue heart;
    💜 purple heart; 🖤 black heart; 🤍 white heart; 🤎 brown heart; 💔 broken heart;
    ❤️‍🔥 heart on fire; 💖 sparkling heart; 💯 hundred, perfect; 💥 boom, collision; 💫 dizzy star;
    💦 drops, sweat; 💨 dash, fast; 💬 speech, comment; 💭 thought; 💤 sleeping, zzz;
    ✅ check mark, done, yes; ☑️ ballot box, done; ✔️ tick, done; ❌ cross, no, wrong;
    ❎ cross button; ➕ plus, add; ➖ minus; ➗ divide; ✖️ times, multiply; ❓ question;
    ❔ white question; ❗ exclamation, important; ‼️ double exclamation; ⁉️ what, interrobang;
    ⚠️ warning, careful; 🚫 prohibited, forbidden; ⛔ no entry; 🛑 stop sign; ♻️ recycle;
    🔴 red, stop; 🟠 orange circle; 🟡 yellow, wait; 🟢 green, go; 🔵 blue circle; 🟣 purple circle;
    ⚫ black circle; ⚪ white circle; 🔺 up triangle; 🔻 down triangle; 🔔 bell, notify;
    🔕 muted, silent; 🎵 note, music; ➡️ right arrow; ⬅️ left arrow; ⬆️ up arrow; ⬇️ down arrow;
    🔄 again, refresh; 🔁 repeat; 🔀 shuffle; ▶️ play; ⏸️ pause; ⏹️ stop button; 🆕 new; 🆗 ok button;
    🆘 help, sos; 🔝 top; 🔜 soon; ♾️ infinity; ©️ copyright; #️⃣ hash; 0️⃣ zero; 1️⃣ one; 2️⃣ two;
    3️⃣ three; 4️⃣ four; 5️⃣ five; 🔟 ten`,
  ),
  category(
    "Nature",
    `🐶 dog; 🐱 cat; 🐭 mouse; 🐹 hamster; 🐰 rabbit; 🦊 fox; 🐻 bear; 🐼 panda; 🐨 koala;
    🐯 tiger; 🦁 lion; 🐮 cow; 🐷 pig; 🐸 frog; 🐵 monkey; 🙈 see no evil; 🙉 hear no evil;
    🙊 speak no evil; 🐔 chicken; 🐧 penguin; 🐦 bird; 🐤 chick; 🦆 duck; 🦅 eagle; 🦉 owl, wise;
    🦜 parrot; 🐺 wolf; 🐴 horse; 🦄 unicorn; 🐝 bee, busy; 🐛 bug; 🦋 butterfly; 🐌 snail, slow;
    🐞 ladybird, luck; 🐜 ant; 🕷️ spider; 🐢 turtle, slow; 🐍 snake, python; 🦖 dinosaur; 🐙 octopus;
    🦀 crab, rust; 🐠 fish; 🐬 dolphin; 🐳 whale; 🦈 shark; 🐘 elephant; 🦒 giraffe; 🐑 sheep;
    🦥 sloth, lazy; 🦔 hedgehog; 🐾 paw; 🌵 cactus; 🎄 christmas tree; 🌲 evergreen, tree; 🌳 tree;
    🌴 palm, holiday; 🌱 seedling, grow; 🌿 herb; ☘️ shamrock; 🍀 four leaf clover, luck; 🍁 maple leaf;
    🍂 autumn, leaves; 🍄 mushroom; 🌹 rose; 🌷 tulip; 🌻 sunflower; 🌸 blossom, spring; 💐 bouquet, flowers;
    🌍 earth, world; 🌙 moon, night; 🌕 full moon; ⭐ star; 🌟 glowing star; ✨ sparkles, new, agent;
    ☀️ sun; 🌤️ sun and cloud; ☁️ cloud; 🌧️ rain; ⛈️ storm; ❄️ snow, cold; ⛄ snowman;
    🌈 rainbow; ⚡ lightning, fast, power; 🔥 fire, hot, great; 💧 drop, water; 🌊 wave of water, sea; 🌪️ tornado`,
  ),
  category(
    "Food",
    `☕ coffee, break; 🍵 tea; 🧋 bubble tea; 🥤 soft drink; 🍺 beer; 🍻 cheers, beer; 🥂 toast, celebrate;
    🍷 wine; 🍸 cocktail; 🍾 champagne, celebrate; 🧊 ice; 🍎 apple; 🍐 pear; 🍊 orange; 🍋 lemon;
    🍌 banana; 🍉 watermelon; 🍇 grapes; 🍓 strawberry; 🫐 blueberries; 🍒 cherries; 🍑 peach; 🥭 mango;
    🍍 pineapple; 🥥 coconut; 🥝 kiwi; 🍅 tomato; 🥑 avocado; 🍆 aubergine; 🥔 potato; 🥕 carrot; 🌽 corn;
    🌶️ chilli, hot; 🥦 broccoli; 🧄 garlic; 🧅 onion; 🥜 nuts; 🍞 bread; 🥐 croissant; 🥨 pretzel;
    🧀 cheese; 🥚 egg; 🍳 cooking, breakfast; 🥞 pancakes; 🥓 bacon; 🍔 burger; 🍟 fries; 🍕 pizza, food;
    🌭 hot dog; 🥪 sandwich; 🌮 taco; 🌯 burrito; 🥗 salad; 🍝 pasta; 🍜 noodles, ramen; 🍲 stew;
    🍣 sushi; 🍱 lunch box; 🥟 dumpling; 🍚 rice; 🍦 ice cream; 🍩 doughnut; 🍪 cookie; 🎂 birthday cake;
    🍰 cake, birthday; 🧁 cupcake; 🍫 chocolate; 🍬 sweet; 🍿 popcorn; 🍯 honey; 🧂 salt; 🍽️ dinner, meal`,
  ),
  category(
    "Activities",
    `🎉 party, celebrate, congratulations, hooray; 🎊 confetti; 🎈 balloon; 🎁 present, gift;
    🏆 trophy, win; 🥇 gold medal, first; 🥈 silver medal, second; 🥉 bronze medal, third; 🏅 medal;
    🎯 target, goal, bullseye; ⚽ football; 🏀 basketball; 🏈 american football; ⚾ baseball; 🎾 tennis;
    🏐 volleyball; 🏓 table tennis; 🏸 badminton; 🥊 boxing; ⛳ golf; 🏹 bow and arrow; 🎣 fishing;
    🎿 ski; 🏂 snowboard; 🏄 surf; 🏊 swim; 🚴 cycle, bike; 🧗 climb; 🏋️ lift weights; 🤸 cartwheel;
    🎮 video game; 🕹️ joystick; 🎲 dice, chance; ♟️ chess; 🧩 puzzle; 🃏 joker; 🎭 theatre; 🎨 art, paint;
    🎬 film, action; 🎤 microphone, sing; 🎧 headphones; 🎸 guitar; 🎹 piano; 🥁 drum; 🎺 trumpet; 🎻 violin;
    🎟️ ticket; 🪄 magic wand; 🪅 piñata; 🎆 fireworks`,
  ),
  category(
    "Places",
    `🚀 rocket, launch, ship; ✈️ plane, travel; 🛫 take-off; 🛬 landing; 🚁 helicopter; 🛸 ufo; 🚂 train;
    🚇 underground, metro; 🚌 bus; 🚕 taxi; 🚗 car; 🚚 lorry, delivery; 🚜 tractor; 🏎️ racing car, fast;
    🏍️ motorcycle; 🛵 scooter; 🚲 bicycle; 🛴 kick scooter; ⛵ sailing boat; 🚢 liner, ship; ⚓ anchor; 🛟 ring buoy, help;
    🚧 construction, work in progress; 🚦 traffic light; 🗺️ map; 🧭 compass; 🏔️ mountain; ⛰️ hill;
    🏕️ camping; 🏖️ beach, holiday; 🏝️ island; 🌋 volcano; 🏠 house, home; 🏡 house with garden;
    🏢 office; 🏥 hospital; 🏦 bank; 🏨 hotel; 🏫 school; 🏭 factory; 🏰 castle; ⛪ church; 🕌 mosque;
    🕍 synagogue; ⛩️ shrine; 🗽 statue of liberty; 🗼 tower; 🌉 bridge at night; 🌅 sunrise; 🌃 night; 🎡 ferris wheel;
    🎢 roller coaster; ⛲ fountain; ⛺ tent; 🏁 finish, flag; 🚩 red flag; 🏴‍☠️ pirate flag; 🏳️‍🌈 rainbow flag`,
  ),
  category(
    "Objects",
    `💡 idea, light bulb; 🔦 torch; 🕯️ candle; 💻 laptop, computer; 🖥️ screen, desktop; ⌨️ keyboard;
    🖱️ computer mouse; 🖨️ printer; 📱 phone, mobile; ☎️ telephone; 🔋 battery; 🔌 plug; 💾 floppy disk, save;
    💿 disc; 📷 camera; 🎥 film camera; 📺 television; 📻 radio; ⏰ alarm clock, time; ⏱️ stopwatch;
    ⌛ hourglass done; ⏳ hourglass, wait; 📅 calendar, date; 📆 tear-off calendar; 🗓️ planner; 📌 pin; 📍 place, location;
    📎 paper clip, attachment; 🔗 link, chain; 📏 ruler; ✂️ scissors, cut; 🖊️ pen; ✏️ pencil; 🖌️ brush;
    📝 memo, note, write; 📄 page, document; 📃 curled page; 📑 tabs; 📊 bar chart, statistics; 📈 chart up, growth;
    📉 chart down, loss; 📋 clipboard; 📁 folder; 🗂️ dividers; 🗃️ card box; 🗑️ bin, delete; 📦 package, parcel;
    📬 letter box, mail; ✉️ envelope, letter; 📧 e-mail; 📤 outbox; 📥 inbox; 📢 loudspeaker, announce; 📣 megaphone;
    🔍 search, magnifier; 🔒 lock, secure; 🔓 unlocked; 🔑 key; 🛡️ shield, protect; 🔨 hammer; 🔧 wrench, fix;
    🪛 screwdriver; ⚙️ gear, settings; 🧰 toolbox; 🧲 magnet; 🪜 ladder; ⚖️ scales, justice; 🧪 test tube, experiment;
    🔬 microscope; 🔭 telescope; 🧬 dna; 💊 pill; 💉 syringe; 🩹 plaster, patch; 🩺 stethoscope; 🧹 broom, clean up;
    🧼 soap; 🪣 bucket; 🧯 fire extinguisher; 🚪 door; 🪑 chair; 🛋️ sofa; 🛏️ bed; 🚿 shower; 🛒 trolley, shop;
    💰 money, bag; 💸 money with wings, spend; 💳 card, pay; 🧾 receipt, bill; 💎 gem; 👑 crown; 🎓 graduation;
    👓 glasses; 🎩 top hat; 👟 trainer, shoe; 👜 handbag; 🎒 backpack; ☂️ umbrella; 🧸 teddy; 🪙 coin; 🔮 crystal ball;
    🧵 thread; 🧶 yarn; 📚 books; 📖 open book, read; 🔖 bookmark; 🏷️ label, tag; 📰 news; 🪧 placard, sign`,
  ),
];

export const allEmojis: readonly Emoji[] = emojiCategories.flatMap(({ emojis }) => emojis);

/** The emoji that match a query: by name first, then by the beginning of other words. */
export function findEmojis(query: string): Emoji[] {
  const typed = query.trim().toLowerCase();
  const rank = ({ name, words }: Emoji): number => {
    if (name === typed) return 0;
    if (name.startsWith(typed)) return 1;
    if (words.split(", ").some((word) => word.startsWith(typed))) return 2;
    return words.includes(typed) ? 3 : 4;
  };
  return allEmojis
    .map((each) => ({ each, place: rank(each) }))
    .filter(({ place }) => place < 4)
    .toSorted((one, other) => one.place - other.place)
    .map(({ each }) => each);
}
