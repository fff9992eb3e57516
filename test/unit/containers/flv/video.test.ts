import test from 'ava';
import { FlvError } from '../../../../src/containers/flv/error.ts';
import { isExtendedVideo, readVideoPart, videoParts, type VideoTag } from '../../../../src/containers/flv/video.ts';
import type { VideoCodec } from '../../../../src/core/track.ts';
import {
  buildVideoTag,
  buildVideoTracks,
  type TrackTagOptions,
  type VideoTagOptions,
} from '../../../support/rtmp/flv-build.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const AVC1 = '61766331';
const HVC1 = '68766331';
const AV01 = '61763031';
const VP09 = '76703039';

/** The tracks of a tag, read. */
function read(bytes: Buffer): (VideoTag & { trackId: number })[] {
  return [...videoParts(bytes)].flatMap((part) => {
    const tag = readVideoPart(part);
    return tag === undefined ? [] : { ...tag, trackId: part.trackId };
  });
}

const BOTH_WAYS: readonly (readonly [string, string, VideoTagOptions & { compositionTime: number }])[] = [
  [
    'H264 sequence header',
    '17 00 000000 0164',
    { codec: 'H264', packet: 'config', key: true, compositionTime: 0, data: hex('0164') },
  ],
  [
    'H264 key frame',
    '17 01 000000 aabb',
    { codec: 'H264', packet: 'frame', key: true, compositionTime: 0, data: hex('aabb') },
  ],
  [
    'H264 frame that is shown later',
    '27 01 000050 cc',
    { codec: 'H264', packet: 'frame', key: false, compositionTime: 80, data: hex('cc') },
  ],
  [
    'H264 frame that is shown earlier',
    '27 01 ffffd8 cc',
    { codec: 'H264', packet: 'frame', key: false, compositionTime: -40, data: hex('cc') },
  ],
  [
    'H264 end of sequence',
    '17 02 000000',
    { codec: 'H264', packet: 'end', key: true, compositionTime: 0, data: hex('') },
  ],
  [
    'HEVC sequence start',
    `90 ${HVC1} 01`,
    { codec: 'H265', packet: 'config', key: true, compositionTime: 0, data: hex('01') },
  ],
  [
    'HEVC coded frames',
    `a1 ${HVC1} 000021 dd`,
    { codec: 'H265', packet: 'frame', key: false, compositionTime: 33, data: hex('dd') },
  ],
  [
    'AV1 sequence start',
    `90 ${AV01} 81`,
    { codec: 'AV1', packet: 'config', key: true, compositionTime: 0, data: hex('81') },
  ],
  [
    'AV1 coded frames',
    `91 ${AV01} ee`,
    { codec: 'AV1', packet: 'frame', key: true, compositionTime: 0, data: hex('ee') },
  ],
  [
    'VP9 coded frames',
    `a1 ${VP09} ee`,
    { codec: 'VP9', packet: 'frame', key: false, compositionTime: 0, data: hex('ee') },
  ],
  ['VP8 sequence end', '92 76703038', { codec: 'VP8', packet: 'end', key: true, compositionTime: 0, data: hex('') }],
];

for (const [name, bytes, tag] of BOTH_WAYS) {
  test(`FLV video: ${name}, both ways`, (t) => {
    const { codec, packet, compositionTime, data } = tag;
    t.deepEqual(read(hex(bytes)), [{ trackId: 0, codec, packet, compositionTime, nanos: 0, data }]);
    t.deepEqual(buildVideoTag(tag), hex(bytes));
  });
}

const READ_ONLY: readonly (readonly [string, string, Partial<VideoTag>])[] = [
  ['HEVC under its old codec id', '1c 01 000000 aa', { codec: 'H265', packet: 'frame', data: hex('aa') }],
  ['H264 by FourCC', `91 ${AVC1} 000014 aa`, { codec: 'H264', compositionTime: 20, data: hex('aa') }],
  [
    'coded frames without composition time',
    `a3 ${HVC1} aa`,
    { codec: 'H265', packet: 'frame', compositionTime: 0, data: hex('aa') },
  ],
  [
    'AV1 sequence start of MPEG-2 TS',
    `95 ${AV01} 80 04 81 05 0c e0`,
    { codec: 'AV1', packet: 'config', data: hex('81050c00') },
  ],
  [
    'a nanosecond offset',
    `97 02 0a2c2a 01 ${AV01} aa`,
    { codec: 'AV1', packet: 'frame', nanos: 666_666, data: hex('aa') },
  ],
  [
    'a modifier of 256 bytes and another',
    `97 ff 00ff ${'00'.repeat(256)} 17 02 000001 01 ${AV01} aa`,
    { nanos: 1, data: hex('aa') },
  ],
];

for (const [name, bytes, tag] of READ_ONLY) {
  test(`read FLV video: ${name}`, (t) => {
    t.like(read(hex(bytes))[0], tag);
  });
}

type Tracks = readonly TrackTagOptions<VideoCodec>[];

const TRACKS: readonly (readonly [string, string, VideoTag['packet'], boolean, Tracks])[] = [
  [
    'one track',
    `96 01 ${HVC1} 02 000021 aa`,
    'frame',
    true,
    [{ trackId: 2, codec: 'H265', compositionTime: 33, data: hex('aa') }],
  ],
  [
    'a frame of one track of H264',
    `a6 01 ${AVC1} 01 ffffd8 aabb`,
    'frame',
    false,
    [{ trackId: 1, codec: 'H264', compositionTime: -40, data: hex('aabb') }],
  ],
  [
    'headers of many tracks',
    `96 10 ${AV01} 01 000002 8181 02 000001 82`,
    'config',
    true,
    [
      { trackId: 1, codec: 'AV1', data: hex('8181') },
      { trackId: 2, codec: 'AV1', data: hex('82') },
    ],
  ],
  [
    'frames of many tracks',
    `a6 11 ${AVC1} 00 000004 000000 aa 01 000005 000014 bbbb`,
    'frame',
    false,
    [
      { trackId: 0, codec: 'H264', compositionTime: 0, data: hex('aa') },
      { trackId: 1, codec: 'H264', compositionTime: 20, data: hex('bbbb') },
    ],
  ],
  [
    'headers of many codecs',
    `96 20 ${AV01} 00 000001 81 ${HVC1} 01 000002 0102`,
    'config',
    true,
    [
      { trackId: 0, codec: 'AV1', data: hex('81') },
      { trackId: 1, codec: 'H265', data: hex('0102') },
    ],
  ],
  [
    'frames of many codecs',
    `96 21 ${AV01} 00 000001 ee ${AVC1} 01 000004 000028 dd`,
    'frame',
    true,
    [
      { trackId: 0, codec: 'AV1', data: hex('ee') },
      { trackId: 1, codec: 'H264', compositionTime: 40, data: hex('dd') },
    ],
  ],
];

for (const [name, bytes, packet, key, tracks] of TRACKS) {
  test(`FLV video: ${name}, both ways`, (t) => {
    t.deepEqual(
      read(hex(bytes)),
      tracks.map((track) => ({ compositionTime: 0, ...track, packet, nanos: 0 })),
    );
    t.deepEqual(buildVideoTracks(packet, key, tracks), hex(bytes));
  });
}

test('a modifier in front of several video tracks goes for all of them', (t) => {
  const tags = read(hex(`a7 02 000064 06 13 ${HVC1} 03 000001 aa 04 000001 bb`));
  t.deepEqual(
    tags.map(({ trackId, nanos }) => [trackId, nanos]),
    [
      [3, 100],
      [4, 100],
    ],
  );
});

test('FLV video tags without a frame are skipped', (t) => {
  for (const bytes of ['57 00', `d0 00`, `94 ${HVC1} 02 0009`, `96 04 ${HVC1} 00 02`]) {
    t.deepEqual(read(hex(bytes)), [], bytes);
  }
});

test('legacy and enhanced video tags are distinguished', (t) => {
  t.true(isExtendedVideo(hex('91')));
  t.false(isExtendedVideo(hex('17')));
  t.false(isExtendedVideo(Buffer.alloc(0)));
});

const REFUSED: readonly (readonly [string, string])[] = [
  ['an empty tag', ''],
  ['an old codec', '12 00'],
  ['an unknown packet type of H264', '17 09 000000'],
  ['a tag that ends in its header', '17 01 0000'],
  ['an unknown FourCC', '91 78787878 00'],
  ['a FourCC that is cut off', '91 6176'],
  ['an unknown packet type', `98 ${AV01} 00`],
  ['a composition time that is cut off', `91 ${HVC1} 0000`],
  ['a modifier that is cut off', '97 05 0000'],
  ['a modifier without a packet type', '97 02 000000'],
  ['several tracks inside several tracks', `96 06 ${AV01} 00`],
  ['an unknown kind of several tracks', `96 31 ${AV01} 00`],
  ['a track longer than its tag', `96 11 ${AV01} 00 0000ff aa`],
  ['several tracks that are none', `96 11 ${AVC1}`],
  ['a composition time of a track that is cut off', `96 11 ${AVC1} 00 000002 0000`],
  ['a descriptor of another codec', `95 ${HVC1} 80 04 81 05 0c e0`],
  ['a descriptor that is cut off', `95 ${AV01} 80 04 81`],
];

for (const [name, bytes] of REFUSED) {
  test(`refuse FLV video: ${name}`, (t) => {
    t.throws(() => read(hex(bytes)), { instanceOf: FlvError });
  });
}

test('every prefix and changed first byte of real tags is read or refused', (t) => {
  const others: string[] = [];
  for (const [, bytes] of [...BOTH_WAYS, ...READ_ONLY, ...TRACKS]) {
    const whole = hex(bytes);
    for (let i = 0; i < Math.min(whole.length, 24); i++) {
      for (let first = 0; first < 256; first++) {
        const tag = Buffer.concat([Buffer.of(first), whole.subarray(1, i + 1)]);
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
