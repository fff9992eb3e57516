import test from 'ava';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import { offeredCodec, receiverCapabilities } from '../../../src/webrtc/codecs.ts';
import { MediaWorker } from '../../../src/webrtc/media-worker.ts';
import { until } from '../../support/until.ts';

test('a publisher is asked for one key frame a second at most, however often viewers ask', async (t) => {
  const worker = await MediaWorker.start(0, [{ protocol: 'udp', ip: '127.0.0.1', port: 0, announced: [] }], (error) => t.fail(error.message));
  t.teardown(() => worker.close());
  const [near, far] = [await worker.createDirectTransport(), await worker.createDirectTransport()];
  const codec = offeredCodec('VP8', false, 'All');
  const { mimeType, clockRate, payloadType, feedback } = codec;
  const producer = await worker.produce(near, codec, {
    codecs: [{ mimeType: mimeType as 'video/VP8', clockRate, payloadType, parameters: {}, rtcpFeedback: [...feedback] }], encodings: [{ ssrc: 9 }],
  });
  const asked: number[] = [];
  await producer.enableTraceEvent(['pli']);
  producer.on('trace', () => asked.push(performance.now()));
  const consumer = await far.consume({ producerId: producer.id, rtpCapabilities: receiverCapabilities(codec, []), pipe: true });
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
  let answered = asked.length;
  const seconds = await until('a second and a half', async () => {
    await consumer.requestKeyFrame();
    send(++sequence, asked.length > answered);
    answered = asked.length;
    const passed = (performance.now() - begin) / 1000;
    return passed > 1.5 && passed;
  });
  t.true(asked.length > 0);
  t.true(asked.length < seconds + 2, `${asked.length} times in ${seconds} s`);
});
