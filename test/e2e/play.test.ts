import test, { type ExecutionContext } from 'ava';
import type { TrackInfo } from '../../src/stats/track-schema.ts';
import {
  FFMPEG7,
  Program,
  complaints,
  patternArguments,
  publishPattern,
  type Picture,
} from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const kiln = await Kiln.start({ llhls: '<SegmentDuration>2</SegmentDuration>', iceAddress: '*' });
test.after.always(() => kiln.stop());

/** Plays some seconds of a stream's LL-HLS with ffmpeg, which says nothing else when all is well. */
async function decode(t: ExecutionContext, stream: string): Promise<void> {
  const url = kiln.httpUrl(`/app/${stream}/llhls.m3u8`);
  await until('the master playlist is there', async () => (await fetch(url)).status === 200);
  const player = new Program('ffmpeg', [
    '-nostdin',
    '-v',
    'warning',
    '-i',
    url,
    '-map',
    '0',
    '-t',
    '5',
    '-fps_mode',
    'vfr',
    '-f',
    'null',
    '-',
  ]);
  t.teardown(() => player.stop());
  t.is(await player.exited(), 0, player.stderr);
  t.is(complaints(player.stderr), '');
  const { body } = await kiln.stream(stream);
  const sounds = body.response.outputs[0]?.tracks.flatMap(({ audio }) => audio ?? []);
  t.deepEqual(sounds?.map(({ codec, bypass, codecStatus }) => [codec, bypass, codecStatus]).sort(), [
    ['AAC', true, 'Ready'],
    ['OPUS', false, 'Ready'],
  ]);
}

async function pictureOf(stream: string): Promise<TrackInfo['video']> {
  return (await kiln.stream(stream)).body.response.input.tracks[0]?.video;
}

test('ffmpeg publishes H264 and AAC; the API shows both; LL-HLS decodes without a warning', async (t) => {
  const publisher = publishPattern(kiln.rtmpUrl('main'), { size: '640x360', rate: 30, gop: 30 });
  t.teardown(() => publisher.stop());
  const { input, outputs, name } = await kiln.liveStream('main');
  t.is(name, 'main');
  t.is(input.sourceType, 'Rtmp');
  t.like(input.connection, {
    transport: 'TCP',
    protocol: 'TCP',
    localPort: kiln.ports.rtmp,
    remoteAddress: '127.0.0.1',
  });
  const [video, audio] = input.tracks;
  t.like(video, { type: 'Video', video: { codec: 'H264', width: 640, height: 360, timebase: { num: 1, den: 90000 } } });
  t.like(audio, { type: 'Audio', audio: { codec: 'AAC', samplerate: 48000, channel: 2 } });
  t.deepEqual(outputs[0]?.playlists.map(({ fileName }) => fileName).sort(), ['llhls', 'webrtc_default']);
  await decode(t, 'main');
  const measured = await pictureOf('main');
  t.is(Math.round(measured?.framerateAvg ?? 0), 30);
  t.is(measured?.keyFrameIntervalLatest, 30);
  t.false(measured?.hasBframes);
  t.true((measured?.bitrateAvg ?? 0) > 100_000);
});

test('B-frames pass through LL-HLS', async (t) => {
  const codec = ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '2', '-pix_fmt', 'yuv420p'];
  const publisher = publishPattern(kiln.rtmpUrl('bframes'), { size: '320x180', codec });
  t.teardown(() => publisher.stop());
  await kiln.liveStream('bframes');
  await decode(t, 'bframes');
  t.true((await pictureOf('bframes'))?.hasBframes);
});

const EXTENDED: Record<string, Picture> = {
  H265: {
    size: '320x180',
    codec: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=error', '-pix_fmt', 'yuv420p'],
  },
  AV1: {
    size: '320x180',
    codec: ['-c:v', 'libsvtav1', '-preset', '12', '-svtav1-params', 'pred-struct=1:rc=2', '-pix_fmt', 'yuv420p'],
  },
};
for (const [name, picture] of Object.entries(EXTENDED)) {
  test(`ffmpeg 7 publishes ${name} by Enhanced RTMP and LL-HLS decodes`, async (t) => {
    const publisher = publishPattern(kiln.rtmpUrl(name), picture, FFMPEG7);
    t.teardown(() => publisher.stop());
    const { input } = await kiln.liveStream(name);
    t.is(input.tracks[0]?.video?.codec, name);
    await decode(t, name);
  });
}

// the sink keeps the time: live sources leave samples out where the machine is busy, and that is a gap
test('GStreamer publishes by rtmp2sink and LL-HLS decodes', async (t) => {
  const publisher = new Program('gst-launch-1.0', [
    '-q',
    'videotestsrc',
    '!',
    'video/x-raw,width=320,height=180,framerate=30/1',
    '!',
    'x264enc',
    'tune=zerolatency',
    'speed-preset=ultrafast',
    'key-int-max=30',
    'bitrate=300',
    '!',
    'h264parse',
    '!',
    'queue',
    '!',
    'mux.',
    'audiotestsrc',
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
    'flvmux',
    'name=mux',
    'streamable=true',
    '!',
    'rtmp2sink',
    'sync=true',
    `location=${kiln.rtmpUrl('gst')}`,
  ]);
  t.teardown(() => publisher.stop());
  const { input } = await kiln.liveStream('gst');
  t.deepEqual(input.tracks.map(({ type }) => type).sort(), ['Audio', 'Video']);
  await decode(t, 'gst');
});

test('DELETE of a stream disconnects its publisher', async (t) => {
  const publisher = new Program('ffmpeg', [
    ...patternArguments({ size: '320x180' }),
    '-f',
    'flv',
    kiln.rtmpUrl('gone'),
  ]);
  t.teardown(() => publisher.stop());
  await kiln.liveStream('gone');
  const deleted = await kiln.api('/v1/vhosts/default/apps/app/streams/gone', 'DELETE');
  t.like(deleted, { status: 200, body: { statusCode: 200, message: 'OK' } });
  await publisher.exited();
  t.is((await kiln.stream('gone')).status, 404);
});
