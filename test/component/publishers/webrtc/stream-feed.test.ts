import { mock } from 'node:test';
import test from 'ava';
import { InputStream } from '../../../../src/core/input-stream.ts';
import { OutputStream } from '../../../../src/core/output-stream.ts';
import { Counters } from '../../../../src/core/counters.ts';
import { createLogger } from '../../../../src/log/log.ts';
import { StreamFeed } from '../../../../src/publishers/webrtc/stream-feed.ts';
import { offeredCodec } from '../../../../src/webrtc/codecs.ts';
import { LiveProducers } from '../../../../src/webrtc/live-producers.ts';
import { MediaWorker } from '../../../../src/webrtc/media-worker.ts';
import { videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { until } from '../../../support/time/until.ts';

for (const [jitterBuffer, delayBufferTimeMs] of [
  [false, 300],
  [true, 0],
  [true, 300],
] as const) {
  test.serial(
    `JitterBuffer ${jitterBuffer}, DelayBufferTimeMs ${delayBufferTimeMs}: frames are sent later`,
    async (t) => {
      const socket = { protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] } as const;
      const worker = await MediaWorker.start(0, [socket], () => t.fail());
      const output = new OutputStream(
        'stream',
        new InputStream('stream', { type: 'Rtmp', kind: 'rtmp' }, new Counters()),
      );
      const [late, prompt] = [
        { jitterBuffer, delayBufferTimeMs },
        { jitterBuffer: false, delayBufferTimeMs: 0 },
      ].map(
        (config) =>
          new StreamFeed(output, { playoutDelay: undefined, ...config }, new LiveProducers(), createLogger('silent')),
      ) as [StreamFeed, StreamFeed];
      t.teardown(() => {
        late.close();
        prompt.close();
        worker.close();
      });
      const track = videoTrack();
      output.setTracks([track]);
      const outletOf = async (feed: StreamFeed) => {
        const { producer } = await feed.outlet([track], worker, offeredCodec('H264', false, 'All'));
        return async () => (await producer.getStats()).reduce((sum, { packetCount }) => sum + packetCount, 0);
      };
      const [sentLate, sentPromptly] = [await outletOf(late), await outletOf(prompt)];
      const standing = performance.now();
      const clock = mock.method(performance, 'now', () => standing);
      t.teardown(() => clock.mock.restore());
      output.write({ track, dts: 0, pts: 0, duration: 0, key: true, data: Buffer.of(0, 0, 0, 4, 0x65, 1, 1, 1) });
      await until('the frame without a delay', async () => (await sentPromptly()) > 0);
      t.is(await sentLate(), 0);
      clock.mock.restore();
      await until('the frame with one', async () => (await sentLate()) > 0);
      t.is(await sentLate(), await sentPromptly());
    },
  );
}

test('a codec that comes back soon reaches the producer that was left of it', async (t) => {
  const socket = { protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] } as const;
  const worker = await MediaWorker.start(0, [socket], () => t.fail());
  const input = new InputStream('stream', { type: 'Rtmp', kind: 'rtmp' }, new Counters());
  const output = new OutputStream('stream', input);
  const feed = new StreamFeed(
    output,
    { playoutDelay: undefined, jitterBuffer: false, delayBufferTimeMs: 0 },
    new LiveProducers(),
    createLogger('silent'),
  );
  t.teardown(() => {
    feed.close();
    worker.close();
  });
  const h264 = videoTrack();
  const vp8 = videoTrack({ codec: 'VP8', config: undefined });
  const open = (track: typeof h264) => feed.outlet([track], worker, offeredCodec(track.codec, false, 'All'));
  output.setTracks([h264]);
  (await open(h264)).release();
  output.setTracks([vp8]);
  (await open(vp8)).release();
  output.setTracks([h264]);
  const { producer } = await open(h264);
  const packets = videoPackets(h264, { to: 1 }).map((packet) => {
    return { ...packet, data: Buffer.concat([Buffer.of(0, 0, 0, 4, packet.key ? 0x65 : 0x41), Buffer.alloc(3, 1)]) };
  });
  for (const packet of packets) output.write(packet);
  const [stats] = await producer.getStats();
  t.is(stats?.packetCount, packets.length);
});
