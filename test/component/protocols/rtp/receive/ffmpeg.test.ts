import { spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { STATIC_FORMATS } from '../../../../../src/protocols/rtp/receive/format.ts';
import { RtpReceiver } from '../../../../../src/protocols/rtp/receive/receiver.ts';
import { parseRtp } from '../../../../../src/protocols/rtp/receive/packet.ts';
import { until } from '../../../../support/time/until.ts';
import { ivfFrames, samples, vector } from '../../../../unit/codecs/vectors.ts';

/** Of so many bytes that most frames take several, and of one that a transport stream packet fits. */
const SMALL = 150;
const USUAL = 1400;

/** Two ports that follow each other: with a stream ffmpeg sends reports to the next one, which is to be nobody else's. */
async function boundPair(): Promise<[Socket, Socket]> {
  for (;;) {
    const first = await bound(0);
    const second = first && (await bound(first.address().port + 1));
    if (first !== undefined && second !== undefined) return [first, second];
    first?.close();
  }
}

async function bound(port: number): Promise<Socket | undefined> {
  const socket = createSocket('udp4');
  socket.bind(port, '127.0.0.1');
  return await once(socket, 'listening').then(
    () => socket,
    () => undefined,
  );
}

/** What ffmpeg sends of a file, in small packets, and what it says of it. */
async function received(
  file: string,
  rtpOptions: readonly string[],
  packetBytes = SMALL,
): Promise<{ frames: Buffer[]; times: number[] }> {
  const [socket, reports] = await boundPair();
  const packets: Buffer[] = [];
  socket.on('message', (message) => packets.push(message));
  const path = fileURLToPath(new URL(`../../../../vectors/codecs/${file}`, import.meta.url));
  const child = spawn(
    'ffmpeg',
    [
      '-v',
      'error',
      '-nostdin',
      '-re',
      '-i',
      path,
      '-c',
      'copy',
      ...rtpOptions,
      `rtp://127.0.0.1:${socket.address().port}?pkt_size=${packetBytes}`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let sdp = '';
  child.stdout.on('data', (text: Buffer) => (sdp += text.toString()));
  const [code] = (await once(child, 'close')) as [number];
  // what is under way comes before what is sent to the same socket now
  const last = Buffer.from('last');
  socket.send(last, socket.address().port, '127.0.0.1');
  await until('the last packet', () => packets.at(-1)?.equals(last));
  socket.close();
  reports.close();
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}`);
  const [, encoding, clockRate] = /a=rtpmap:\d+ ([^/]+)\/(\d+)/.exec(sdp) ?? [];
  const parameters = Object.fromEntries(
    [...(/a=fmtp:\d+ (.*)/.exec(sdp)?.[1] ?? '').matchAll(/([^=; ]+)=([^;\s]*)/g)].map(([, name = '', value = '']) => [
      name.toLowerCase(),
      value,
    ]),
  );
  const known = STATIC_FORMATS[packets[0]?.readUInt8(1) ?? 0];
  const format = encoding === undefined ? known : { encoding, clockRate: Number(clockRate), parameters };
  if (format === undefined) throw new Error(`no format in ${sdp}`);
  const frames: Buffer[] = [];
  const times: number[] = [];
  const receiver = new RtpReceiver(format, 0, {
    frame: (data, timestamp) => {
      frames.push(data);
      times.push(timestamp);
    },
    damaged: (reason) => {
      throw new Error(reason);
    },
    configuration: () => {},
    lost: () => {},
    restarted: () => {},
  });
  packets.slice(0, -1).forEach((packet, now) => receiver.push(parseRtp(packet), now));
  return { frames, times };
}

for (const [name, file, wanted, options] of [
  ['H.264 with B-frames', 'h264-high-bframes.mp4', samples(vector('h264-high-bframes.mp4')), ['-f', 'rtp']],
  ['H.265', 'h265-main.mp4', samples(vector('h265-main.mp4')), ['-f', 'rtp']],
  ['VP8', 'vp8.ivf', ivfFrames(vector('vp8.ivf')), ['-f', 'rtp']],
  ['VP9', 'vp9-profile0.ivf', ivfFrames(vector('vp9-profile0.ivf')), ['-strict', '-2', '-f', 'rtp']],
  ['AAC', 'aac-stereo.mp4', samples(vector('aac-stereo.mp4')), ['-f', 'rtp']],
  ['LATM', 'aac-stereo.mp4', samples(vector('aac-stereo.mp4')), ['-f', 'rtp', '-rtpflags', 'latm']],
  ['Opus', 'opus-stereo.mp4', samples(vector('opus-stereo.mp4')), ['-f', 'rtp']],
] as const) {
  test(`${name} of ffmpeg comes back frame by frame`, async (t) => {
    const { frames, times } = await received(file, options);
    t.deepEqual(
      frames.map((frame) => frame.toString('hex')),
      wanted.map((frame) => frame.toString('hex')),
    );
    t.is(new Set(times).size, times.length);
  });
}

test('MPEG-TS of ffmpeg comes in whole packets', async (t) => {
  const { frames } = await received('h264-high-bframes.mp4', ['-f', 'rtp_mpegts'], USUAL);
  const stream = Buffer.concat(frames);
  t.is(stream.length % 188, 0);
  for (let at = 0; at < stream.length; at += 188) t.is(stream[at], 0x47);
});
