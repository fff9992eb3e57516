import test from 'ava';
import {
  framesPerSecond,
  rateOf,
  slateArguments,
  type SlateTrack,
} from '../../../../src/channels/standby/slate-command.ts';
import type { MediaInfo } from '../../../../src/channels/scheduled/media-info.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../../../support/media/packets.ts';

const ENCODERS = new Set(['libx264', 'libx265', 'libvpx', 'aac', 'libopus']);
const VIDEO: SlateTrack = { track: videoTrack(), framerate: 29.95, bitrate: 900_000 };
const AUDIO: SlateTrack = { track: audioTrack(), framerate: 0, bitrate: 128_000 };
const FILE: MediaInfo = {
  ...{ format: 'mov', length: 5000, data: [] },
  video: { index: 1, codec: 'H264' },
  audio: [{ index: 0, codec: 'AAC' }],
};

function args(tracks: readonly SlateTrack[], file?: MediaInfo, text = ''): string {
  return slateArguments({ tracks, file, text, encoders: ENCODERS }).join(' ');
}

test('a measured frame rate is taken for the nearest usual one', (t) => {
  const cases: [number, string][] = [
    [29.95, '30000/1001'],
    [30.01, '30'],
    [24.9, '25'],
    [59.9, '60000/1001'],
    [0, '30'],
    [17.3, '17'],
    [0.2, '1'],
    [240, '240'],
  ];
  for (const [measured, rate] of cases) t.is(rateOf(measured), rate, String(measured));
  t.is(Math.round(1000 * framesPerSecond('30000/1001')), 29_970);
});

test('a slate is encoded in the settings of the tracks', (t) => {
  const high = videoTrack({ config: AVC_HIGH, width: 1280, height: 720 });
  const line = args(
    [
      { ...VIDEO, track: high },
      { ...AUDIO, track: audioTrack({ samplerate: 44_100, channels: 1 }) },
    ],
    FILE,
  );
  for (const part of [
    '-c:0 libx264',
    '-profile:0 high',
    '-level:0 3.1',
    '-bf:0 0',
    'scale=1280:720',
    'fps=30000/1001',
    '-map 0:1',
    '-map 0:0',
    '-c:1 aac',
    '-ar:1 44100',
    '-ac:1 1',
    '-filter:1 apad',
  ])
    t.true(line.includes(part), `${part} in ${line}`);
});

test('a slate has the shape and colour of the samples', (t) => {
  const colour = { primaries: 9, transfer: 16, matrix: 9, fullRange: true };
  const line = args([{ ...VIDEO, track: videoTrack({ sar: { num: 4, den: 3 }, width: 1440, height: 1080, colour }) }]);
  for (const part of ['pad=1920:1080', 'scale=1440:1080', 'setsar=4/3', '-color_trc:0 16', 'out_range=full'])
    t.true(line.includes(part), `${part} in ${line}`);
});

test('what a file lacks is generated', (t) => {
  const silent = args([VIDEO, AUDIO], { ...FILE, audio: [] });
  t.true(silent.includes('anullsrc') && silent.includes('-map 0:1 ') && silent.includes('-map 1:a'));
  const sound = args([VIDEO, AUDIO], { ...FILE, video: undefined });
  t.true(sound.includes('color=') && sound.includes('-map 1:v') && sound.includes('-map 0:0'));
  t.false(sound.includes('apad'));
  const none = args([VIDEO, AUDIO]);
  t.true(none.includes('-map 0:v') && none.includes('-map 1:a') && !none.includes('/proc/self/fd'));
});

test('the text of a slate is no part of the filters', (t) => {
  const line = args([VIDEO], undefined, `it's 100%: a\\b, [c];`);
  t.true(line.includes(String.raw`text=it\\\'s 100%\\: a\\\\b\, \[c\]\;`), line);
});

test('a long text is written in smaller letters', (t) => {
  t.true(args([VIDEO], undefined, 'soon').includes('fontsize=25'));
  t.true(args([VIDEO], undefined, 'x'.repeat(100)).includes('fontsize=10'));
});

test('a slate for audio alone has no picture', (t) => {
  for (const line of [args([AUDIO]), args([AUDIO], FILE)]) {
    t.false(line.includes('color='));
    t.true(line.includes('-c:0 aac'));
  }
});

test('a codec that cannot be encoded is named', (t) => {
  const av1 = { ...VIDEO, track: videoTrack({ codec: 'AV1' }) };
  t.throws(() => args([av1, AUDIO]), { message: 'AV1 cannot be encoded' });
  const of = { tracks: [VIDEO], file: undefined, text: '', encoders: new Set<string>() };
  t.throws(() => slateArguments(of), { message: 'H264 cannot be encoded' });
});
