import test, { type ExecutionContext } from 'ava';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import { parseRtp } from '../../../src/protocols/rtp/receive/packet.ts';
import { offeredCodec, receiverCapabilities } from '../../../src/webrtc/codecs.ts';
import { MediaWorker } from '../../../src/webrtc/media-worker.ts';
import { until } from '../../support/time/until.ts';

const LONGEST = 1300;

/** Opens producers on one worker, and collects what is sent to each of them. */
async function open(t: ExecutionContext, count: number) {
  const worker = await MediaWorker.start(
    0,
    [{ protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] }],
    (error) => t.fail(error.message),
  );
  t.teardown(() => worker.close());
  const [near, far] = [await worker.createDirectTransport(), await worker.createDirectTransport()];
  const codec = offeredCodec('OPUS', false, 'All');
  const { mimeType, clockRate, channels, payloadType } = codec;
  const producers = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const producer = await worker.produce(near, codec, {
        codecs: [
          { mimeType: mimeType as 'audio/opus', clockRate, payloadType, parameters: {}, ...(channels && { channels }) },
        ],
        encodings: [{ ssrc: index + 1 }],
      });
      const consumer = await far.consume({
        producerId: producer.id,
        rtpCapabilities: receiverCapabilities(codec, []),
        pipe: true,
      });
      const came: Buffer[] = [];
      consumer.on('rtp', (packet) => came.push(parseRtp(packet).payload));
      let sequence = 0;
      const packetOf = (payload: Buffer): Buffer => {
        const packet = Buffer.alloc(12 + payload.length);
        sequence++;
        writeRtpHeader(packet, { payloadType, marker: false, sequence, timestamp: sequence * 960, ssrc: index + 1 });
        payload.copy(packet, 12);
        return packet;
      };
      return { producer, came, packetOf, head: worker.rtp.headOf(producer) };
    }),
  );
  return { channel: worker.rtp, producers };
}

test('RTP packets of every length arrive as they were added, whatever mediasoup sends between them', async (t) => {
  const { channel, producers } = await open(t, 2);
  const sent: Buffer[][] = [[], []];
  const memory = Buffer.alloc(12 + LONGEST);
  for (let length = 1; length <= LONGEST; length++) {
    for (const [index, { producer, packetOf, head }] of producers.entries()) {
      const payload = Buffer.alloc(length, length + index);
      const packet = packetOf(payload);
      sent[index]?.push(payload);
      if (length % 50 === 0) {
        channel.flush();
        producer.send(packet);
      } else {
        channel.add(head, memory.subarray(0, packet.copy(memory)));
      }
    }
    if (length % 7 === 0) channel.flush();
  }
  channel.flush();
  await until('all packets', () => producers.every(({ came }) => came.length >= LONGEST));
  t.deepEqual(
    producers.map(({ came }) => came),
    sent,
  );
});

test('nothing is sent to a media worker before the flush, and nothing twice', async (t) => {
  const { channel, producers } = await open(t, 1);
  const [{ came, packetOf, head, producer }] = producers as [(typeof producers)[number]];
  channel.add(head, packetOf(Buffer.of(1)));
  const stats = (await producer.getStats()) as { packetCount: number }[];
  t.deepEqual(stats, []);
  channel.flush();
  await until('the packet', () => came.length === 1);
  channel.flush();
  channel.add(head, packetOf(Buffer.of(2)));
  channel.flush();
  await until('the next', () => came.length > 1);
  t.deepEqual(came, [Buffer.of(1), Buffer.of(2)]);
});
