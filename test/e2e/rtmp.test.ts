import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../src/core/packet.ts';
import type { AudioTrack, VideoTrack } from '../../src/core/track.ts';
import { FFMPEG7, Program } from '../support/media/ffmpeg.ts';
import { startRtmp, type Recording } from '../support/rtmp/rtmp-server.ts';
import { until } from '../support/time/until.ts';

const SECONDS = 3;
const PATTERN = ['-f', 'lavfi', '-i', `testsrc2=size=320x180:rate=30:duration=${SECONDS}`];
const TONE = ['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=48000:duration=${SECONDS}`];
const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '30', '-pix_fmt', 'yuv420p'];

async function publish(t: ExecutionContext, command: string, args: readonly string[]): Promise<Recording> {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const url = `rtmp://127.0.0.1:${server.port}/app/live`;
  const publisher = new Program(
    command,
    args.map((arg) => arg.replaceAll('URL', url)),
  );
  t.teardown(() => publisher.stop());
  t.is(await publisher.exited(), 0, publisher.stderr);
  await until('the stream ends with its publisher', () => server.recordings[0]?.closed !== undefined);
  t.is(server.recordings.length, 1);
  return server.recordings[0] as Recording;
}

function of(recording: Recording, type: 'video' | 'audio'): Packet[] {
  return recording.packets.filter(({ track }) => track.type === type);
}

function assertMonotonic(t: ExecutionContext, packets: readonly Packet[]): void {
  for (const [i, { dts, pts }] of packets.entries()) {
    t.true(Number.isInteger(dts) && Number.isInteger(pts) && pts >= dts && dts >= 0);
    if (i > 0) t.true(dts > (packets[i - 1] as Packet).dts, `packet ${i}`);
  }
}

/** What a source of 30 frames a second and 48 kHz sound must have become. */
function assertComplete(t: ExecutionContext, recording: Recording): void {
  const video = of(recording, 'video');
  const audio = of(recording, 'audio');
  assertMonotonic(t, video);
  assertMonotonic(t, audio);
  t.is(video.length, 30 * SECONDS);
  t.true((video[0] as Packet).key);
  const shown = video.map(({ pts }) => pts).sort((a, b) => a - b);
  for (let i = 1; i < shown.length; i++) {
    const step = (shown[i] as number) - (shown[i - 1] as number);
    t.true(Math.abs(step - 3000) <= 90, `frame ${i} is shown ${step} ticks after the last`);
  }
  const samples = audio.reduce((sum, { duration }) => sum + duration, 0);
  t.true(Math.abs(samples - 48_000 * SECONDS) <= 4096, `${samples} samples`);
  for (let i = 1; i < audio.length; i++) {
    const last = audio[i - 1] as Packet;
    t.is((audio[i] as Packet).dts, last.dts + last.duration);
  }
}

test('ffmpeg publishes H264 with B-frames and AAC', async (t) => {
  const recording = await publish(t, 'ffmpeg', [
    '-v',
    'error',
    ...PATTERN,
    ...TONE,
    ...X264,
    '-b:v',
    '400k',
    '-c:a',
    'aac',
    '-b:a',
    '96k',
    '-f',
    'flv',
    'URL?key=secret',
  ]);
  assertComplete(t, recording);
  t.is(recording.tracks.length, 1);
  // ffmpeg writes data rates in units of 1024.
  const [video, audio] = recording.input.tracks as [VideoTrack, AudioTrack];
  t.like(video, { id: 0, name: 'Video', codec: 'H264', width: 320, height: 180, framerate: 30, bitrate: 390_625 });
  t.like(audio, { id: 1, name: 'Audio', codec: 'AAC', samplerate: 48_000, channels: 1, bitrate: 93_750 });
  t.true(recording.input.measured(0)?.hasBframes);
  t.is(recording.input.measured(0)?.keyFrameIntervalAvg, 30);
  t.regex(recording.input.source.url ?? '', /^rtmp:\/\/127\.0\.0\.1:\d+\/app\/live$/);
  t.is(recording.input.source.connection?.()?.transport, 'TCP');
});

test('ffmpeg publishes pictures without sound, at once live', async (t) => {
  const recording = await publish(t, 'ffmpeg', ['-v', 'error', ...PATTERN, ...X264, '-f', 'flv', 'URL']);
  t.is(of(recording, 'video').length, 30 * SECONDS);
  t.is(recording.input.tracks.length, 1);
  t.is(recording.tracks.length, 1);
});

test('ffmpeg publishes sound without pictures', async (t) => {
  const recording = await publish(t, 'ffmpeg', ['-v', 'error', ...TONE, '-c:a', 'aac', '-f', 'flv', 'URL']);
  t.true(of(recording, 'audio').length > 45 * SECONDS);
  t.deepEqual(
    recording.input.tracks.map(({ type }) => type),
    ['audio'],
  );
});

test('ffmpeg publishes MP3', async (t) => {
  const recording = await publish(t, 'ffmpeg', [
    '-v',
    'error',
    ...TONE,
    '-c:a',
    'libmp3lame',
    '-ar',
    '44100',
    '-f',
    'flv',
    'URL',
  ]);
  t.like(recording.input.tracks[0], { codec: 'MP3', samplerate: 44_100 });
  assertMonotonic(t, of(recording, 'audio'));
});

test('ffmpeg 7 publishes HEVC by Enhanced RTMP', async (t) => {
  const recording = await publish(t, FFMPEG7, [
    '-v',
    'error',
    ...PATTERN,
    ...TONE,
    '-c:v',
    'libx265',
    '-preset',
    'ultrafast',
    '-x265-params',
    'log-level=error:keyint=30:bframes=2',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
    '-f',
    'flv',
    'URL',
  ]);
  assertComplete(t, recording);
  t.like(recording.input.tracks[0], { codec: 'H265', width: 320, height: 180 });
});

test('ffmpeg 7 publishes AV1 by Enhanced RTMP', async (t) => {
  const recording = await publish(t, FFMPEG7, [
    '-v',
    'error',
    ...PATTERN,
    ...TONE,
    '-c:v',
    'libsvtav1',
    '-preset',
    '12',
    '-g',
    '30',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
    '-f',
    'flv',
    'URL',
  ]);
  assertComplete(t, recording);
  t.like(recording.input.tracks[0], { codec: 'AV1', width: 320, height: 180 });
});

test('GStreamer publishes H264 and AAC by rtmp2sink', async (t) => {
  const recording = await publish(t, 'gst-launch-1.0', [
    '-q',
    'flvmux',
    'name=mux',
    'streamable=true',
    '!',
    'rtmp2sink',
    'location=URL',
    'videotestsrc',
    `num-buffers=${30 * SECONDS}`,
    '!',
    'video/x-raw,width=320,height=180,framerate=30/1',
    '!',
    'x264enc',
    'speed-preset=ultrafast',
    'key-int-max=30',
    '!',
    'h264parse',
    '!',
    'queue',
    '!',
    'mux.',
    // at its end the sink forgets the last messages that it has not sent yet
    'audiotestsrc',
    `num-buffers=${50 * SECONDS}`,
    'samplesperbuffer=1024',
    '!',
    'audio/x-raw,rate=48000,channels=2',
    '!',
    'avenc_aac',
    '!',
    'aacparse',
    '!',
    'queue',
    '!',
    'mux.',
  ]);
  const video = of(recording, 'video');
  t.is(video.length, 30 * SECONDS);
  assertMonotonic(t, video);
  assertMonotonic(t, of(recording, 'audio'));
  t.true(of(recording, 'audio').length >= 47 * SECONDS - 2);
  t.like(recording.input.tracks[0], { codec: 'H264', width: 320, height: 180 });
  t.like(recording.input.tracks[1], { codec: 'AAC', samplerate: 48_000, channels: 2 });
});
