import test from 'ava';
import { isExtendedAudio, parseAudioTag, type AudioTag } from '../../../../src/containers/flv/audio.ts';
import { FlvError } from '../../../../src/containers/flv/error.ts';
import { buildAudioTag } from '../../../support/flv-build.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const OPUS = '4f707573';
const MP4A = '6d703461';

const BOTH_WAYS: readonly (readonly [string, string, Omit<AudioTag, 'nanos' | 'trackId'>])[] = [
  ['AAC sequence header', 'af 00 1190', { codec: 'AAC', packet: 'config', data: hex('1190') }],
  ['AAC frame', 'af 01 21aa', { codec: 'AAC', packet: 'frame', data: hex('21aa') }],
  ['Opus sequence start', `90 ${OPUS} 01`, { codec: 'OPUS', packet: 'config', data: hex('01') }],
  ['Opus coded frames', `91 ${OPUS} fcaa`, { codec: 'OPUS', packet: 'frame', data: hex('fcaa') }],
  ['Opus sequence end', `92 ${OPUS}`, { codec: 'OPUS', packet: 'end', data: hex('') }],
  ['MP3 by FourCC', '91 2e6d7033 fffb', { codec: 'MP3', packet: 'frame', data: hex('fffb') }],
];

for (const [name, bytes, tag] of BOTH_WAYS) {
  test(`${name}, both ways`, (t) => {
    t.deepEqual(parseAudioTag(hex(bytes)), { trackId: 0, nanos: 0, ...tag });
    t.deepEqual(buildAudioTag(tag), hex(bytes));
  });
}

const READ_ONLY: readonly (readonly [string, string, Partial<AudioTag>])[] = [
  ['MP3', '2f fffb9064', { codec: 'MP3', packet: 'frame', data: hex('fffb9064') }],
  ['MP3 of 8 kHz', 'e2 ffe3', { codec: 'MP3', packet: 'frame' }],
  ['AAC that claims to be mono', 'aa 01 21', { codec: 'AAC', data: hex('21') }],
  ['AAC by FourCC', `90 ${MP4A} 1190`, { codec: 'AAC', packet: 'config', data: hex('1190') }],
  ['one track of several', `95 01 ${MP4A} 02 21`, { codec: 'AAC', packet: 'frame', trackId: 2, data: hex('21') }],
  ['a nanosecond offset', `97 02 000064 01 ${OPUS} fc`, { codec: 'OPUS', packet: 'frame', nanos: 100 }],
];

for (const [name, bytes, tag] of READ_ONLY) {
  test(`read ${name}`, (t) => {
    t.like(parseAudioTag(hex(bytes)), tag);
  });
}

test('the wanted track is found behind others, or nothing', (t) => {
  const many = hex(`95 11 ${OPUS} 00 000001 aa 01 000002 bbbb`);
  t.like(parseAudioTag(many, 1), { trackId: 1, data: hex('bbbb') });
  t.is(parseAudioTag(many, 2), undefined);
  t.is(parseAudioTag(hex('af 01 21'), 1), undefined);
});

test('a speaker layout is passed over', (t) => {
  t.is(parseAudioTag(hex(`94 ${OPUS} 01 06 0000003f`)), undefined);
});

test('the two forms are told apart', (t) => {
  t.true(isExtendedAudio(hex('91')));
  t.false(isExtendedAudio(hex('af')));
  t.false(isExtendedAudio(Buffer.alloc(0)));
});

for (const [name, bytes] of [
  ['an empty tag', ''], ['PCM', '3f 00'], ['Speex', 'b2 00'], ['AAC without a packet type', 'af'],
  ['FLAC', '91 664c6143 00'], ['a FourCC that is cut off', '91 4f70'], ['an unknown packet type', `93 ${OPUS} 00`],
  ['a track longer than its tag', `95 11 ${OPUS} 00 0000ff aa`],
] as const) {
  test(`refuse ${name}`, (t) => {
    t.throws(() => parseAudioTag(hex(bytes)), { instanceOf: FlvError });
  });
}
