import test from 'ava';
import { carriesCaptions } from '../../../src/codecs/captions.ts';
import { joinNals } from '../../../src/codecs/nal.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
/** user_data_registered_itu_t_t35 with cc_data of one pair of CEA-608, which is padding (ATSC A/53 Part 4, 6.2.3). */
const T35 = 'b5 0031 47413934 03 41 ff fc 8080 ff';
const UUID = '05 10 00112233445566778899aabbccddeeff';

test('captions are found in the SEI of H264, behind other messages', (t) => {
  const slice = hex('6588 84');
  const unit = (...units: string[]) => joinNals([...units.map(hex), slice]);
  t.true(carriesCaptions('H264', unit(`06 04 0e ${T35} 80`)));
  t.true(carriesCaptions('H264', unit(`06 ${UUID} 80`, '0601 8080', `06 04 0e ${T35} 80`)));
  t.false(carriesCaptions('H264', unit(`06 ${UUID} 80`)));
  t.false(carriesCaptions('H264', unit()));
});

test('bytes that look like captions in a slice, or after it, are none', (t) => {
  t.false(carriesCaptions('H264', joinNals([hex(`65 04 0e ${T35} 80`)])));
  t.false(carriesCaptions('H264', joinNals([hex('6588'), hex(`06 04 0e ${T35} 80`)])));
});

test('captions are found in the prefix SEI of H265', (t) => {
  t.true(carriesCaptions('H265', joinNals([hex('4601'), hex(`4e01 04 0e ${T35} 80`), hex('2601 af')])));
  t.false(carriesCaptions('H265', joinNals([hex(`4e01 ${UUID} 80`), hex('2601 af')])));
});

test('captions are found in the metadata of AV1', (t) => {
  const frame = '32 02 10 00';
  t.true(carriesCaptions('AV1', hex(`2a 0f 04 ${T35} ${frame}`)));
  t.false(carriesCaptions('AV1', hex(`2a 02 01 80 ${frame}`)));
  t.false(carriesCaptions('AV1', hex(frame)));
});

test('other codecs have no captions, nor has a malformed frame', (t) => {
  t.false(carriesCaptions('VP9', hex(T35)));
  t.false(carriesCaptions('H264', hex('ffffffff 06')));
  t.false(carriesCaptions('H264', hex('000000')));
  t.false(carriesCaptions('AV1', hex('2a ff')));
});
