import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import { offeredCodec, receiverCapabilities } from '../../../src/webrtc/codecs.ts';
import { MediaWorker } from '../../../src/webrtc/media-worker.ts';
import { until } from '../../support/time/until.ts';

async function start(t: ExecutionContext): Promise<MediaWorker> {
  const worker = await MediaWorker.start(
    0,
    [{ protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] }],
    (error) => t.fail(error.message),
  );
  t.teardown(() => worker.close());
  return worker;
}

test('a publisher is asked for one key frame a second at most, however often viewers ask', async (t) => {
  const worker = await start(t);
  const [near, far] = [await worker.createDirectTransport(), await worker.createDirectTransport()];
  const codec = offeredCodec('VP8', false, 'All');
  const { mimeType, clockRate, payloadType, feedback } = codec;
  const producer = await worker.produce(near, codec, {
    codecs: [
      { mimeType: mimeType as 'video/VP8', clockRate, payloadType, parameters: {}, rtcpFeedback: [...feedback] },
    ],
    encodings: [{ ssrc: 9 }],
  });
  const asked: number[] = [];
  await producer.enableTraceEvent(['pli']);
  producer.on('trace', () => asked.push(performance.now()));
  const consumer = await far.consume({
    producerId: producer.id,
    rtpCapabilities: receiverCapabilities(codec, []),
    pipe: true,
  });
  const send = (sequence: number, isKey: boolean): void => {
    const packet = Buffer.alloc(40);
    writeRtpHeader(packet, { payloadType, marker: true, sequence, timestamp: sequence * 3000, ssrc: 9 });
    // a descriptor that begins a frame, a frame tag, the start code of a key frame
    packet.set([0x10, isKey ? 0x10 : 0x11, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 1, 0xb4, 0], 12);
    producer.send(packet);
  };
  const arrived: number[] = [];
  consumer.on('rtp', (packet) => arrived.push(packet.readUInt16BE(2)));
  let sequence = 0;
  send(++sequence, true);
  await until('the first one came', () => arrived.length > 0);
  const begin = performance.now();
  const before = asked.length;
  let answered = before;
  const seconds = await until('a second and a half', async () => {
    await consumer.requestKeyFrame();
    send(++sequence, asked.length > answered);
    answered = asked.length;
    const passed = (performance.now() - begin) / 1000;
    return passed > 1.5 && passed;
  });
  t.true(asked.length > 0);
  t.true(asked.length - before < seconds + 2, `${asked.length - before} times in ${seconds} s`);
});

/** More than what systems let wait for a socket that asks for no more. */
const BURST = 130;
const PACKET_BYTES = 1200;

test('a burst of datagrams waits for a media worker that is held up', async (t) => {
  const worker = await start(t);
  const port = worker.candidates[0]?.port as number;
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  process.kill(worker.pid, 'SIGSTOP');
  for (let i = 0; i < BURST; i++) await new Promise((sent) => socket.send(Buffer.alloc(PACKET_BYTES), sent));
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const [line = ''] = readFileSync('/proc/net/udp', 'latin1')
    .split('\n')
    .filter((each) => each.includes(`0100007F:${hex} 00000000:0000`));
  process.kill(worker.pid, 'SIGCONT');
  t.is(line.trim().split(/ +/).at(-1), '0', `dropped: ${line}`);
});
