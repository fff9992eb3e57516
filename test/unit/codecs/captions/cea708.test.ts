import test from 'ava';
import { CaptionDecoder } from '../../../../src/codecs/captions/caption-decoder.ts';
import { isCueText } from '../../../../src/core/subtitle-cue.ts';
import { Random } from '../../../soak/random.ts';
import { construct608, constructs708, popOn } from '../../../support/media/captions.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
/** DF0: visible, absolute, 60 down, 105 right, lower centre, two rows of 32 columns. */
const WINDOW = hex('98 38 3c 69 71 1f 11');

/** A decoder of service 1 that has taken blocks of it. */
function after(...blocks: readonly Buffer[]) {
  const decoder = new CaptionDecoder(['SERVICE1']);
  const take = (...more: readonly Buffer[]) => {
    for (const block of more) decoder.push(constructs708(1, block));
    return decoder.texts('SERVICE1').map(({ text }) => text);
  };
  return { decoder, take, shown: take(...blocks) };
}

test('a window shows its text at its place', (t) => {
  const { decoder, take, shown } = after(WINDOW, Buffer.from('GOOD\rEVENING'));
  t.deepEqual(shown, ['GOOD\nEVENING']);
  t.is(decoder.texts('SERVICE1')[0]?.settings, 'line:74%,end position:50%,center align:center');
  t.deepEqual(take(Buffer.from('\rHERE')), ['EVENING\nHERE']);
  t.deepEqual(take(hex('8a01')), []);
  t.deepEqual(take(hex('8901')), ['EVENING\nHERE']);
  t.deepEqual(take(hex('8801')), []);
  t.deepEqual(take(hex('8b01'), hex('8b01'), Buffer.from('X')), ['X']);
  t.deepEqual(take(hex('8c01'), Buffer.from('GONE')), []);
});

test('windows are apart, and one that is not visible shows nothing', (t) => {
  const { take, shown } = after(WINDOW, Buffer.from('ONE'), hex('99 18 3c 69 71 1f 11'), Buffer.from('TWO'));
  t.deepEqual(shown, ['ONE']);
  t.deepEqual(take(hex('8902')), ['ONE', 'TWO']);
  t.deepEqual(take(hex('80 0e'), Buffer.from('ANEW')), ['ANEW', 'TWO']);
  t.deepEqual(take(hex('8f'), Buffer.from('NONE')), []);
});

test('pens move and have styles, and characters beyond ASCII are those of the standard', (t) => {
  const { take, shown } = after(
    WINDOW,
    hex('92 01 02'),
    hex('90 05 80'),
    Buffer.from('IT'),
    hex('90 05 00 1034 e9 7f 18 4e2d'),
  );
  t.deepEqual(shown, ['<i>IT</i>”é♪_']);
  t.deepEqual(take(hex('08 08 0c'), hex('92 0f 3f'), Buffer.from('AB')), ['B']);
});

test('a code may go on in the next block', (t) => {
  const { shown } = after(WINDOW.subarray(0, 3), WINDOW.subarray(3), Buffer.from('AB'), hex('10'), hex('25'));
  t.deepEqual(shown, ['AB…']);
});

test('codes of unknown kinds are left out with their arguments', (t) => {
  const codes = [hex('1001 100841 10104141 1018414141 108041414141'), hex('1090024141 1141 9700000000 8d41 8e')];
  const { shown } = after(WINDOW, ...codes, Buffer.from('Z'));
  t.deepEqual(shown, ['Z']);
});

test('a packet that another one interrupts is dropped, and padding and data that are not valid count for nothing', (t) => {
  const decoder = new CaptionDecoder(['SERVICE1']);
  const packet = constructs708(1, Buffer.concat([WINDOW, Buffer.from('LOST')]));
  decoder.push(packet.subarray(0, 9));
  decoder.push(constructs708(1, WINDOW));
  decoder.push(hex('fa 0000 fe 4141'));
  decoder.push(constructs708(1, Buffer.from('KEPT')));
  t.deepEqual(
    decoder.texts('SERVICE1').map(({ text }) => text),
    ['KEPT'],
  );
});

test('channels that had captions are told by their names', (t) => {
  const decoder = new CaptionDecoder();
  t.deepEqual(decoder.used, []);
  decoder.push(construct608(undefined));
  decoder.push(constructs708(1, Buffer.alloc(0)));
  t.deepEqual(decoder.used, []);
  decoder.push(constructs708(2, WINDOW));
  decoder.push(constructs708(1, WINDOW));
  for (const pair of popOn('A')) decoder.push(construct608(pair));
  for (const [first, second] of popOn('B')) decoder.push(construct608([first === 0x14 ? 0x1d : first | 8, second], 2));
  t.deepEqual(decoder.used, ['CC1', 'CC4', 'SERVICE1', 'SERVICE2']);
  t.deepEqual(decoder.texts('CC1'), [{ settings: 'line:84.67% position:10% align:start', text: 'A' }]);
  t.deepEqual(decoder.texts('SERVICE1'), []);
});

test('random constructs give texts of cues, of a limited size', (t) => {
  const random = new Random(708);
  const decoder = new CaptionDecoder(['CC1', 'CC4', 'SERVICE1', 'SERVICE7']);
  for (let round = 0; round < 3000; round++) {
    if (random.below(3) > 0) decoder.push(constructs708(1, Buffer.concat([WINDOW, random.bytes(random.below(20))])));
    else decoder.push(random.bytes(random.below(60)));
    for (const channel of ['CC1', 'CC4', 'SERVICE1', 'SERVICE7'])
      for (const { text } of decoder.texts(channel)) {
        t.true(isCueText(text), JSON.stringify(text));
        t.true(text.length < 16 * 64 * 12);
      }
  }
});
