import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import test from 'ava';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import { parseRtp } from '../../../src/protocols/rtp/receive/packet.ts';
import { offeredCodec, receiverCapabilities } from '../../../src/webrtc/codecs.ts';
import { MediaWorker } from '../../../src/webrtc/media-worker.ts';
import { until } from '../../support/time/until.ts';

const OPUS = offeredCodec('OPUS', false, 'All');

/** Sizes of the payloads of a burst, which together fit into a receive buffer that was asked for no size. */
const BURSTS: readonly (readonly number[])[] = [
  [1],
  [1188, 1188, 1188, 1188, 1188, 1188, 1188, 1188, 17],
  [1188, 1188],
  [20, 1188, 20, 1188, 1188, 20, 20, 21, 22, 23],
  Array.from({ length: 50 }, () => 1188),
  Array.from({ length: 40 }, (_, n) => 1000 - n),
  Array.from({ length: 40 }, (_, n) => 1000 + n),
  [1, 1, 1, 1, 1188],
];

test('datagrams that a worker sends in one turn arrive whole and in their order, whatever their sizes', async (t) => {
  const worker = await MediaWorker.start(
    0,
    [{ protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] }],
    (error) => t.fail(error.message),
  );
  t.teardown(() => worker.close());
  const { mimeType, clockRate, channels, payloadType } = OPUS;
  const producer = await worker.produce(await worker.createDirectTransport(), OPUS, {
    codecs: [
      { mimeType: mimeType as 'audio/opus', clockRate, payloadType, parameters: {}, ...(channels && { channels }) },
    ],
    encodings: [{ ssrc: 1 }],
  });
  const peers = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const socket = createSocket('udp4').bind(0, '127.0.0.1');
      t.teardown(() => socket.close());
      await once(socket, 'listening');
      const came: Buffer[] = [];
      socket.on('message', (datagram) => {
        // RTCP is sent beside it (RFC 5761 section 4)
        if ((datagram.readUInt8(1) & 0x7f) === OPUS.payloadType) came.push(parseRtp(datagram).payload);
      });
      const pipe = await worker.createPipeTransport();
      await pipe.connect({ ip: '127.0.0.1', port: socket.address().port });
      await pipe.consume({ producerId: producer.id, rtpCapabilities: receiverCapabilities(OPUS, []) } as never);
      return came;
    }),
  );
  const head = worker.rtp.headOf(producer);
  const sent: Buffer[] = [];
  for (const sizes of BURSTS) {
    for (const size of sizes) {
      const sequence = sent.length + 1;
      const payload = Buffer.alloc(size, sequence);
      const packet = Buffer.alloc(12 + size);
      writeRtpHeader(packet, { payloadType, marker: false, sequence, timestamp: sequence * 960, ssrc: 1 });
      payload.copy(packet, 12);
      worker.rtp.add(head, packet);
      sent.push(payload);
    }
    worker.rtp.flush();
    await until('the burst has come to all', () => peers.every((came) => came.length >= sent.length));
  }
  for (const came of peers) t.deepEqual(came, sent);
});
