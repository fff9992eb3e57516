import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { pictures, rtp } from '../../../support/media/camera-media.ts';
import { CAMERA_SDP, FakeCamera } from '../../../support/rtsp/fake-camera.ts';
import { playRtsp } from '../../../support/rtsp/rtsp-player.ts';
import { until } from '../../../support/time/until.ts';

/** What comes of packets of 20 ms of audio that a camera describes in these lines. */
async function heard(t: ExecutionContext, lines: readonly string[], ticks: number, payload: Buffer, payloadType = 98) {
  const section = [`m=audio 0 RTP/AVP ${payloadType}`, ...lines, 'a=control:trackID=1'].join('\r\n');
  const sdp = CAMERA_SDP.replace('m=audio 0 RTP/AVP 8\r\na=control:trackID=1', section);
  const camera = await FakeCamera.start(t, { sdp });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of pictures(1)) camera.media(0, packet);
  for (let i = 0; i < 5; i++) camera.media(2, rtp(payloadType, i, i * ticks, payload));
  await until('the audio', () => played.of('audio').length === 5);
  const packets = played.of('audio');
  const { codec, samplerate, channels } = packets[0]?.track as { codec: string; samplerate: number; channels: number };
  const seconds = packets.map(({ dts, duration, track: { timebase } }) => [
    ((dts - (packets[0]?.dts ?? 0)) * timebase.num) / timebase.den,
    (duration * timebase.num) / timebase.den,
  ]);
  return { codec, samplerate, channels, seconds, data: packets[0]?.data };
}

const TWENTY_MS = [0, 1, 2, 3, 4].map((i) => [i * 0.02, 0.02]);

test('G.711 is as its line in the description says', async (t) => {
  for (const [line, ticks, bytes, expected] of [
    ['PCMU/16000', 320, 320, { codec: 'PCMU', samplerate: 16_000, channels: 1 }],
    ['PCMU/16000/1', 320, 320, { codec: 'PCMU', samplerate: 16_000, channels: 1 }],
    ['PCMA/48000', 960, 960, { codec: 'PCMA', samplerate: 48_000, channels: 1 }],
    ['PCMA/8000/2', 160, 320, { codec: 'PCMA', samplerate: 8000, channels: 2 }],
  ] as const) {
    const { seconds, ...format } = await heard(t, [`a=rtpmap:98 ${line}`], ticks, Buffer.alloc(bytes, 0xd5));
    t.like(format, expected, line);
    t.deepEqual(seconds, TWENTY_MS, line);
  }
});

test('G.722 is of 16 kHz, with a clock of 8 kHz', async (t) => {
  const { seconds, ...format } = await heard(t, ['a=rtpmap:98 G722/8000'], 160, Buffer.alloc(160, 0xd5));
  t.like(format, { codec: 'G722', samplerate: 16_000, channels: 1 });
  t.deepEqual(seconds, TWENTY_MS);
});

test('Opus is of two channels, also when it begins with mono', async (t) => {
  const lines = ['a=rtpmap:98 opus/48000/2', 'a=fmtp:98 sprop-stereo=1'];
  const { seconds, ...format } = await heard(t, lines, 960, Buffer.of(0b01111_000, 1, 2));
  t.like(format, { codec: 'OPUS', samplerate: 48_000, channels: 2 });
  t.deepEqual(seconds, TWENTY_MS);
});

test('AAC whose parameters are under another number, or not there, has no headers in its frames', async (t) => {
  const map = 'a=rtpmap:104 mpeg4-generic/48000/1';
  const modes = 'streamtype=5; mode=AAC-hbr; sizelength=13; indexlength=3; indexdeltalength=3';
  const payload = Buffer.from('0010002021010203', 'hex');
  for (const [fmtp, channels] of [
    [`a=fmtp:97 ${modes}; config=1190`, 2],
    ['a=fmtp:104 config=1190', 2],
    ['a=x-none', 1],
  ] as const) {
    const { seconds, ...format } = await heard(t, [map, fmtp], 1024, payload, 104);
    t.like(format, { codec: 'AAC', samplerate: 48_000, channels }, fmtp);
    t.deepEqual(format.data, Buffer.from('21010203', 'hex'), fmtp);
    t.is(seconds.length, 5);
  }
});

test('audio that is not taken has a line in the log, and keeps nothing waiting', async (t) => {
  for (const [lines, logged] of [
    [['a=rtpmap:98 L16/44100/2'], '"encoding":"L16","msg":"a track over RTSP is not supported'],
    [
      ['a=rtpmap:98 mpeg4-generic/8000', 'a=fmtp:98 mode=CELP-cbr'],
      '"encoding":"MPEG4-GENERIC","reason":"an MPEG-4 mode that is not AAC","msg":"a track over RTSP is not supported',
    ],
    [
      ['a=rtpmap:98 mpeg4-generic/48000', 'a=fmtp:98 mode=AAC-hbr;maxdisplacement=5'],
      '"reason":"interleaved access units"',
    ],
  ] as const) {
    const section = ['m=audio 0 RTP/AVP 98', ...lines, 'a=control:trackID=1'].join('\r\n');
    const sdp = CAMERA_SDP.replace('m=audio 0 RTP/AVP 8\r\na=control:trackID=1', section);
    const camera = await FakeCamera.start(t, { sdp });
    const output: string[] = [];
    const log = pino({}, { write: (line: string) => output.push(line) });
    const played = await playRtsp(t, camera.url(), { log });
    for (const packet of pictures(1)) camera.media(0, packet);
    // at once: reports of nobody are waited for
    t.is(camera.methods().at(-1), 'PLAY');
    await until('the picture', () => played.of('video').length === 1);
    t.true(output.join('').includes(logged), output.join(''));
  }
});

test('a track that the server refuses has a line in the log', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ uri }) => (uri.endsWith('trackID=1') ? '404 Not Found\r\n\r\n' : undefined),
  });
  const output: string[] = [];
  const log = pino({}, { write: (line: string) => output.push(line) });
  await playRtsp(t, camera.url(), { log });
  t.regex(output.join(''), /"encoding":"PCMA","reason":"[^"]*\(404\)[^"]*","msg":"the server refused a track/);
});
