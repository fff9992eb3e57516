import test from 'ava';
import { Cea608Field } from '../../../../src/codecs/captions/cea608.ts';
import { isCueText } from '../../../../src/core/subtitle-cue.ts';
import { Random } from '../../../soak/random.ts';
import { command, letters, popOn, preamble, type Pair } from '../../../support/media/captions.ts';

/** A field that has taken pairs. */
function after(...pairs: readonly (readonly Pair[])[]) {
  const field = new Cea608Field();
  const take = (...more: readonly (readonly Pair[])[]) => {
    for (const [first, second] of more.flat()) field.push(first, second);
    return field.texts(0).map(({ text }) => text);
  };
  return { field, take, shown: take(...pairs) };
}

const twice = (...pair: [number, number]): Pair[] => [pair, pair];

test('a pop-on caption is shown when it ends, until it is erased or the next one ends', (t) => {
  const { take, shown } = after(command('RCL'), preamble(14), letters('GOOD'), preamble(15), letters('EVENING'));
  t.deepEqual(shown, []);
  t.deepEqual(take(command('EOC')), ['GOOD\nEVENING']);
  t.deepEqual(take(command('RCL'), command('ENM'), preamble(15), letters('HERE')), ['GOOD\nEVENING']);
  t.deepEqual(take(command('EOC')), ['HERE']);
  t.deepEqual(take(command('EDM')), []);
});

test('captions roll up by rows', (t) => {
  const { field, take, shown } = after(command('RU2'), command('CR'), preamble(15), letters('ONE'));
  t.deepEqual(shown, ['ONE']);
  t.deepEqual(take(command('CR'), letters('TWO')), ['ONE\nTWO']);
  t.deepEqual(take(command('CR'), letters('THREE')), ['TWO\nTHREE']);
  t.deepEqual(take(preamble(3)), ['TWO\nTHREE']);
  t.is(field.texts(0)[0]?.settings, 'line:15.33% position:10% align:start');
  t.deepEqual(take(command('RU2'), command('CR')), ['THREE']);
  t.deepEqual(take(popOn('POP')), ['POP']);
  t.deepEqual(take(command('RU3')), []);
});

test('captions that are painted on are shown letter by letter', (t) => {
  const { take, shown } = after(command('RDC'), preamble(15), letters('PA'));
  t.deepEqual(shown, ['PA']);
  t.deepEqual(take(letters('INT')), ['PAINT']);
  t.deepEqual(take(command('BS')), ['PAIN']);
  t.deepEqual(take(preamble(15), twice(0x17, 0x21), twice(0x14, 0x24)), ['P']);
});

test('rows apart are texts apart, each at its place', (t) => {
  const { field } = after(command('RDC'), preamble(1, 4), letters('TOP'), preamble(15, 28), letters('END'));
  t.deepEqual(field.texts(0), [
    { settings: 'line:10% position:20% align:start', text: 'TOP' },
    { settings: 'line:84.67% position:80% align:start', text: 'END' },
  ]);
});

test('characters beyond ASCII are those of the standard', (t) => {
  const { shown } = after(
    command('RDC'),
    preamble(15),
    [[0x2a, 0x7e]],
    twice(0x11, 0x37),
    // an extended character replaces the one before it
    letters('A'),
    twice(0x12, 0x20),
    letters('a'),
    twice(0x13, 0x31),
  );
  t.deepEqual(shown, ['áñ♪Áä']);
});

test('styles are tags, and what would be a tag is escaped', (t) => {
  const { shown } = after(
    command('RDC'),
    preamble(15),
    letters('A<B'),
    twice(0x11, 0x2e),
    letters('IT'),
    twice(0x11, 0x2a),
    letters('Y&'),
  );
  t.deepEqual(shown, ['A&lt;B <i>IT</i><c.yellow> Y&amp;</c>']);
});

test('what belongs to another channel, to text mode or to XDS is not in the caption', (t) => {
  const { field, take } = after(command('RDC'), preamble(15), letters('ONE'));
  take(twice(0x1c, 0x29), twice(0x1c, 0x70), letters('TWO'));
  t.deepEqual(
    field.texts(1).map(({ text }) => text),
    ['TWO'],
  );
  t.deepEqual(take(command('RTD'), letters('TEXT')), ['ONE']);
  t.deepEqual(take(command('RDC'), [[0x01, 0x03]], letters('XDS'), [[0x0f, 0x1d]], letters('XX')), ['ONE']);
  t.deepEqual(take(command('RDC'), letters('!')), ['ONE!']);
});

test('field 2 has control codes of its own', (t) => {
  const field = new Cea608Field();
  for (const [first, second] of [...twice(0x15, 0x29), ...twice(0x14, 0x70), ...letters('THREE')])
    field.push(first, second);
  t.deepEqual(
    field.texts(0).map(({ text }) => text),
    ['THREE'],
  );
  t.true(field.isUsed(0));
  t.false(field.isUsed(1));
});

test('a channel is in use from its first caption mode on', (t) => {
  const { field, take } = after([[0x00, 0x00]], letters('NOISE'), twice(0x14, 0x2c), preamble(15), letters('MORE'));
  t.false(field.isUsed(0));
  t.deepEqual(take(command('EOC')), []);
  t.true(field.isUsed(0));
});

test('a code that is sent twice counts once, and one that is sent three times twice', (t) => {
  const { take } = after(command('RDC'), preamble(15), letters('ABC'));
  t.deepEqual(take(twice(0x14, 0x21)), ['AB']);
  t.deepEqual(take(twice(0x14, 0x21), [[0x14, 0x21]]), []);
});

test('random pairs give texts of cues, of 15 rows of 32 columns at most', (t) => {
  const random = new Random(608);
  const field = new Cea608Field();
  for (let round = 0; round < 20_000; round++) {
    const first = random.below(4) === 0 ? 0x10 + random.below(16) : random.below(256);
    field.push(first, random.below(256));
    if (round % 10 > 0) continue;
    for (const { text, settings } of [...field.texts(0), ...field.texts(1)]) {
      t.true(isCueText(text), JSON.stringify(text));
      const plain = text.replaceAll(/<[^>]*>/g, '').replaceAll(/&(amp|lt|gt);/g, '&');
      t.true(plain.split('\n').length <= 15 && plain.split('\n').every((row) => row.length <= 32), plain);
      t.regex(settings, /^line:[\d.]+% position:[\d.]+% align:start$/);
    }
  }
});
