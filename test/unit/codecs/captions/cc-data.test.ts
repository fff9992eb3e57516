import test from 'ava';
import { captionData } from '../../../../src/codecs/captions/cc-data.ts';
import { joinNals } from '../../../../src/codecs/nal.ts';
import { Random } from '../../../soak/random.ts';
import { withCaptions } from '../../../support/media/captions.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
/** user_data_registered_itu_t_t35 with cc_data of one pair of CEA-608, which is padding (ATSC A/53 Part 4, 6.2.3). */
const T35 = 'b5 0031 47413934 03 41 ff fc 8080 ff';
const UUID = '05 10 00112233445566778899aabbccddeeff';
const PADDING = 'fc8080';
const read = (codec: string, data: Buffer) => captionData(codec, data)?.toString('hex');

test('captions are read from the SEI of H264, behind other messages', (t) => {
  const slice = hex('6588 84');
  const unit = (...units: string[]) => joinNals([...units.map(hex), slice]);
  t.is(read('H264', unit(`06 04 0e ${T35} 80`)), PADDING);
  t.is(read('H264', unit(`06 ${UUID} 80`, '0601 8080', `06 ${UUID} 04 0e ${T35} 80`)), PADDING);
  t.is(read('H264', unit(`06 ${UUID} 80`)), undefined);
  t.is(read('H264', unit()), undefined);
});

test('captions of both fields of a frame follow each other', (t) => {
  const unit = joinNals([hex(`06 04 0e ${T35} 04 0e b5 0031 47413934 03 41 ff fd 9420 ff 80`), hex('6588')]);
  t.is(read('H264', unit), 'fc8080fd9420');
});

test('emulation prevention is removed', (t) => {
  const constructs = hex('fc0000 010000 020000');
  for (const codec of ['H264', 'H265'] as const) {
    const frame = withCaptions(codec, joinNals([hex(codec === 'H264' ? '6588' : '2601af')]), constructs);
    t.true(frame.includes(hex('000003')), codec);
    t.deepEqual(captionData(codec, frame), constructs, codec);
  }
});

test('data that are not to be processed, and constructs that are cut off, are none', (t) => {
  t.is(read('H264', joinNals([hex('06 04 0e b5 0031 47413934 03 01 ff fc 9420 ff 80'), hex('65')])), '');
  t.is(read('H264', joinNals([hex('06 04 0f b5 0031 47413934 03 43 ff fc 9420 fc 20'), hex('65')])), 'fc9420');
});

test('bytes that look like captions in a slice, in another message, or after a slice, are none', (t) => {
  t.is(read('H264', joinNals([hex(`65 04 0e ${T35} 80`)])), undefined);
  t.is(read('H264', joinNals([hex('6588'), hex(`06 04 0e ${T35} 80`)])), undefined);
  t.is(read('H264', joinNals([hex(`06 05 0e ${T35} 80`), hex('6588')])), undefined);
});

test('captions are read from the prefix SEI of H265', (t) => {
  t.is(read('H265', joinNals([hex('4601'), hex(`4e01 04 0e ${T35} 80`), hex('2601 af')])), PADDING);
  t.is(read('H265', joinNals([hex(`4e01 ${UUID} 80`), hex('2601 af')])), undefined);
});

test('captions are read from the metadata of AV1', (t) => {
  const frame = '32 02 10 00';
  t.is(read('AV1', hex(`2a 0f 04 ${T35} ${frame}`)), PADDING);
  t.is(read('AV1', hex(`2a 02 01 80 ${frame}`)), undefined);
  t.is(read('AV1', hex(frame)), undefined);
});

test('other codecs have no captions, nor has a malformed frame', (t) => {
  t.is(read('VP9', hex(T35)), undefined);
  t.is(read('H264', hex('ffffffff 06')), undefined);
  t.is(read('H264', hex('000000')), undefined);
  t.is(read('AV1', hex('2a ff')), undefined);
});

test('frames that are cut off or changed somewhere are read as far as they go', (t) => {
  const random = new Random(608);
  const constructs = hex('fc9420 fd9420 ff0241 fe4142');
  for (const codec of ['H264', 'H265', 'AV1'] as const) {
    const frame = { H264: joinNals([hex('658884')]), H265: joinNals([hex('2601af')]), AV1: hex('32021000') }[codec];
    const whole = withCaptions(codec, frame, constructs);
    t.deepEqual(captionData(codec, whole), constructs);
    for (let end = 0; end < whole.length; end++) {
      const found = captionData(codec, whole.subarray(0, end));
      t.true(found === undefined || (found.length % 3 === 0 && found.length <= constructs.length), `${codec} ${end}`);
    }
    for (let round = 0; round < 2000; round++) {
      const mutated = Buffer.from(whole);
      mutated[random.below(mutated.length)] = random.below(256);
      t.true((captionData(codec, mutated)?.length ?? 0) % 3 === 0);
    }
  }
});
