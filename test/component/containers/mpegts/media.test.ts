import test from 'ava';
import { parseAudioSpecificConfig } from '../../../../src/codecs/aac.ts';
import { FFMPEG7 } from '../../../support/media/ffmpeg.ts';
import { demuxTs, encodeTs, PATTERN, probeTs, TONE, X264 } from '../../../support/mpegts/ts-media.ts';

const X265 = [
  '-c:v',
  'libx265',
  '-preset',
  'ultrafast',
  '-pix_fmt',
  'yuv420p',
  '-x265-params',
  'log-level=none:keyint=25',
];
const B_FRAMES = ['-c:v', 'libx264', '-preset', 'veryfast', '-pix_fmt', 'yuv420p', '-g', '25', '-bf', '3'];
const pan = (layout: string, channels: number) => [
  '-af',
  `pan=${layout}|${Array.from({ length: channels }, (_, i) => `c${i}=c0`).join('|')}`,
];

/** Bytes in front of each frame that ffprobe counts as part of it. */
const ADTS = 7;

const CASES: readonly (readonly [name: string, args: readonly string[], headerBytes?: number])[] = [
  ['H264 and AAC', [...PATTERN, ...TONE, ...X264, '-c:a', 'aac'], ADTS],
  ['H264 with B-frames and AAC in LATM', [...PATTERN, ...TONE, ...B_FRAMES, '-c:a', 'aac', '-mpegts_flags', 'latm']],
  [
    'H264 with length fields, and MP3',
    [...PATTERN, ...TONE, ...X264, '-omit_video_pes_length', '0', '-c:a', 'libmp3lame'],
    0,
  ],
  ['H265 and AC-3', [...PATTERN, ...TONE, ...X265, '-c:a', 'ac3'], 0],
  ['H265 and Opus', [...PATTERN, ...TONE, ...X265, '-c:a', 'libopus'], 0],
  ['MP2, stuffed to a constant rate', [...TONE, '-c:a', 'mp2', '-muxrate', '1000k'], 0],
  ['E-AC-3, as DVB tells it', [...TONE, '-c:a', 'eac3', '-mpegts_flags', 'system_b'], 0],
  ['AAC of 5.1 channels', [...TONE, ...pan('5.1', 6), '-c:a', 'aac'], ADTS],
  ['AAC of channels that its frames tell', [...TONE, ...pan('6.1', 7), '-c:a', 'aac'], ADTS],
  [
    'H264 and two languages',
    [
      ...PATTERN,
      ...TONE,
      ...X264,
      '-c:a',
      'aac',
      '-map',
      '0',
      '-map',
      '1',
      '-map',
      '1',
      '-metadata:s:a:0',
      'language=kor',
      '-metadata:s:a:1',
      'language=eng',
    ],
    ADTS,
  ],
];

for (const [name, args, headerBytes] of CASES) {
  test(`${name}: every packet that ffprobe sees, at its times`, async (t) => {
    const ts = await encodeTs(args);
    const probed = await probeTs(ts);
    for (const chunk of [1, 1316, 65_536]) {
      const { changes, units, frames, faults, lost } = demuxTs(ts, chunk);
      t.deepEqual([faults, lost, changes.length], [[], [], 1]);
      t.deepEqual(new Set([...units.keys(), ...frames.keys()]), new Set(probed.keys()));
      for (const [pid, list] of units) {
        t.deepEqual(
          list.map(({ time, compositionTime }) => [time, time + compositionTime]),
          probed.get(pid)?.map(({ dts, pts }) => [dts, pts]),
        );
      }
      for (const [pid, list] of frames) {
        t.deepEqual(
          list.map(({ time }) => Math.round(time)),
          probed.get(pid)?.map(({ pts }) => pts),
        );
        if (headerBytes !== undefined)
          t.deepEqual(
            list.map(({ frame }) => frame.data.length),
            probed.get(pid)?.map(({ size }) => size - headerBytes),
          );
      }
    }
  });
}

test('elementary streams from ffmpeg are described by kind, format and language, or as unsupported', async (t) => {
  const ts = await encodeTs([
    ...PATTERN,
    ...TONE,
    '-c:v',
    'mpeg2video',
    '-c:a',
    'aac',
    ...pan('6.1', 7),
    '-metadata:s:a:0',
    'language=kor',
  ]);
  const { changes, frames, clocks } = demuxTs(ts);
  t.deepEqual(changes, [
    {
      streams: [{ pid: 257, kind: 'audio', form: 'ADTS', language: 'kor' }],
      unknown: [{ pid: 256, unsupported: 'MPEG-2 video' }],
    },
  ]);
  const header = frames.get(257)?.[0]?.frame.header as Buffer;
  t.like(parseAudioSpecificConfig(header), { channels: 7, samplerate: 48_000 });
  t.true(clocks.length > 10);
  t.true(clocks.every((clock, i) => i === 0 || clock > (clocks[i - 1] as number)));
});

test('packets with a time in front, as cameras and discs have them', async (t) => {
  const ts = await encodeTs([...PATTERN, ...X264, '-mpegts_m2ts_mode', '1']);
  const { units, faults } = demuxTs(ts, 1000);
  t.is(units.get(0x1011)?.length, 50);
  t.deepEqual(faults, []);
});

test('MPEG-TS times that wrap stay below 33 bits', async (t) => {
  const ts = await encodeTs(
    [...PATTERN, ...TONE, ...X264, '-c:a', 'aac', '-output_ts_offset', `${2 ** 33 / 90_000 - 2.4}`],
    { ffmpeg: FFMPEG7 },
  );
  const { units } = demuxTs(ts);
  const times = units.get(256)?.map(({ time }) => time) ?? [];
  t.is(times.length, 50);
  t.true(times.every((time) => time < 2 ** 33));
  t.true((times[0] as number) > 2 ** 32 && (times.at(-1) as number) < 2 ** 20);
});
