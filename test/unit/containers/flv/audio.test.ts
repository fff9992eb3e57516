import test from 'ava';
import { audioParts, isExtendedAudio, readAudioPart, type AudioTag } from '../../../../src/containers/flv/audio.ts';
import { FlvError } from '../../../../src/containers/flv/error.ts';
import { buildAudioTag, buildAudioTracks, type TrackTagOptions } from '../../../support/rtmp/flv-build.ts';
import type { AudioCodec } from '../../../../src/core/track.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const OPUS = '4f707573';
const MP4A = '6d703461';
const MP3 = '2e6d7033';

/** The tracks of a tag, read. */
function read(bytes: Buffer): (AudioTag & { trackId: number })[] {
  return [...audioParts(bytes)].flatMap((part) => {
    const tag = readAudioPart(part);
    return tag === undefined ? [] : { ...tag, trackId: part.trackId };
  });
}

const BOTH_WAYS: readonly (readonly [string, string, Omit<AudioTag, 'nanos'>])[] = [
  ['AAC sequence header', 'af 00 1190', { codec: 'AAC', packet: 'config', data: hex('1190') }],
  ['AAC frame', 'af 01 21aa', { codec: 'AAC', packet: 'frame', data: hex('21aa') }],
  ['Opus sequence start', `90 ${OPUS} 01`, { codec: 'OPUS', packet: 'config', data: hex('01') }],
  ['Opus coded frames', `91 ${OPUS} fcaa`, { codec: 'OPUS', packet: 'frame', data: hex('fcaa') }],
  ['Opus sequence end', `92 ${OPUS}`, { codec: 'OPUS', packet: 'end', data: hex('') }],
  ['MP3 by FourCC', '91 2e6d7033 fffb', { codec: 'MP3', packet: 'frame', data: hex('fffb') }],
];

for (const [name, bytes, tag] of BOTH_WAYS) {
  test(`FLV audio: ${name}, both ways`, (t) => {
    t.deepEqual(read(hex(bytes)), [{ trackId: 0, nanos: 0, ...tag }]);
    t.deepEqual(buildAudioTag(tag), hex(bytes));
  });
}

const READ_ONLY: readonly (readonly [string, string, Partial<AudioTag>])[] = [
  ['MP3', '2f fffb9064', { codec: 'MP3', packet: 'frame', data: hex('fffb9064') }],
  ['MP3 of 8 kHz', 'e2 ffe3', { codec: 'MP3', packet: 'frame' }],
  ['AAC that claims to be mono', 'aa 01 21', { codec: 'AAC', data: hex('21') }],
  ['AAC by FourCC', `90 ${MP4A} 1190`, { codec: 'AAC', packet: 'config', data: hex('1190') }],
  ['a nanosecond offset', `97 02 000064 01 ${OPUS} fc`, { codec: 'OPUS', packet: 'frame', nanos: 100 }],
];

for (const [name, bytes, tag] of READ_ONLY) {
  test(`read FLV audio: ${name}`, (t) => {
    t.like(read(hex(bytes))[0], tag);
  });
}

const TRACKS: readonly (readonly [string, string, AudioTag['packet'], readonly TrackTagOptions<AudioCodec>[]])[] = [
  ['one track', `95 01 ${MP4A} 02 21aa`, 'frame', [{ trackId: 2, codec: 'AAC', data: hex('21aa') }]],
  ['the header of one track', `95 00 ${MP4A} ff 1190`, 'config', [{ trackId: 255, codec: 'AAC', data: hex('1190') }]],
  ['the end of one track', `95 02 ${OPUS} 00`, 'end', [{ trackId: 0, codec: 'OPUS', data: hex('') }]],
  [
    'many tracks',
    `95 11 ${OPUS} 00 000001 aa 01 000002 bbbb`,
    'frame',
    [
      { trackId: 0, codec: 'OPUS', data: hex('aa') },
      { trackId: 1, codec: 'OPUS', data: hex('bbbb') },
    ],
  ],
  [
    'many tracks of many codecs',
    `95 21 ${MP4A} 00 000002 21aa ${OPUS} 01 000001 fc ${MP3} 05 000000`,
    'frame',
    [
      { trackId: 0, codec: 'AAC', data: hex('21aa') },
      { trackId: 1, codec: 'OPUS', data: hex('fc') },
      { trackId: 5, codec: 'MP3', data: hex('') },
    ],
  ],
];

for (const [name, bytes, packet, tracks] of TRACKS) {
  test(`FLV audio: ${name}, both ways`, (t) => {
    t.deepEqual(
      read(hex(bytes)),
      tracks.map((track) => ({ ...track, packet, nanos: 0 })),
    );
    t.deepEqual(buildAudioTracks(packet, tracks), hex(bytes));
  });
}

test('a modifier in front of several audio tracks goes for all of them', (t) => {
  const tags = read(hex(`97 02 000064 05 11 ${OPUS} 00 000001 aa 01 000001 bb`));
  t.deepEqual(
    tags.map(({ trackId, nanos }) => [trackId, nanos]),
    [
      [0, 100],
      [1, 100],
    ],
  );
});

test('audio parts before a fault in an FLV tag are read', (t) => {
  const given: number[] = [];
  t.throws(
    () => {
      for (const { trackId } of audioParts(hex(`95 11 ${OPUS} 00 000001 aa 01 0000ff bb`))) given.push(trackId);
    },
    { instanceOf: FlvError },
  );
  t.deepEqual(given, [0]);
});

test('a track of an unknown codec leaves the others readable', (t) => {
  const [first, second] = [...audioParts(hex(`95 21 61632d34 00 000001 aa ${OPUS} 01 000001 bb`))];
  t.throws(() => first && readAudioPart(first), { instanceOf: FlvError, message: /"ac-4" is not supported/ });
  t.like(second && readAudioPart(second), { codec: 'OPUS', data: hex('bb') });
});

test('a tag holds no more tracks than there are ids', (t) => {
  const many = Buffer.concat([hex(`95 11 ${OPUS}`), Buffer.alloc(4 * 257)]);
  t.throws(() => read(many), { instanceOf: FlvError, message: /more tracks/ });
  t.is(read(many.subarray(0, -4)).length, 256);
});

test('a speaker layout is passed over', (t) => {
  for (const bytes of [`94 ${OPUS} 01 06 0000003f`, `95 04 ${OPUS} 01 01 06 0000003f`])
    t.deepEqual(read(hex(bytes)), []);
});

test('legacy and enhanced audio tags are distinguished', (t) => {
  t.true(isExtendedAudio(hex('91')));
  t.false(isExtendedAudio(hex('af')));
  t.false(isExtendedAudio(Buffer.alloc(0)));
});

for (const [name, bytes] of [
  ['an empty tag', ''],
  ['PCM', '3f 00'],
  ['Speex', 'b2 00'],
  ['AAC without a packet type', 'af'],
  ['AC-4', '91 61632d34 00'],
  ['a FourCC that is cut off', '91 4f70'],
  ['an unknown packet type', `93 ${OPUS} 00`],
  ['a track longer than its tag', `95 11 ${OPUS} 00 0000ff aa`],
  ['several tracks that are none', `95 01 ${OPUS}`],
  ['a size of a track that is cut off', `95 11 ${OPUS} 00 0000`],
  ['no kind of several tracks', '95'],
  ['several tracks inside several tracks', `95 05 ${OPUS} 00`],
  ['an unknown kind of several tracks', `95 31 ${OPUS} 00`],
  ['a FourCC of a track that is cut off', '95 21 4f70'],
] as const) {
  test(`refuse FLV audio: ${name}`, (t) => {
    t.throws(() => read(hex(bytes)), { instanceOf: FlvError });
  });
}

test('every prefix and changed first two bytes of real tags are read or refused', (t) => {
  const others: string[] = [];
  for (const [, bytes] of [...BOTH_WAYS, ...READ_ONLY, ...TRACKS]) {
    const whole = hex(bytes);
    for (let length = 0; length <= whole.length; length++) {
      for (let changed = 0; changed < 512; changed++) {
        const tag = Buffer.from(whole.subarray(0, length));
        if (tag.length > changed >> 8) tag[changed >> 8] = changed & 0xff;
        try {
          read(tag);
        } catch (error) {
          if (!(error instanceof FlvError)) others.push(`${tag.toString('hex')}: ${error}`);
        }
      }
    }
  }
  t.deepEqual(others, []);
});
