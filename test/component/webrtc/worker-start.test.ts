import test from 'ava';
import { SignallingClient } from '../../support/webrtc/signalling-client.ts';
import { LiveStream } from '../../support/server/live-stream.ts';
import { until } from '../../support/time/until.ts';
import { h264 } from '../../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../../support/webrtc/webrtc-server.ts';

const picture = await h264();

test('a media worker starts before anybody waits for it: with a preflight, a connection, or a stream for viewers', async (t) => {
  const causes: readonly ((server: Awaited<ReturnType<typeof startWebrtc>>) => unknown)[] = [
    ({ url }) => fetch(`${url}/app/stream?direction=whip`, { method: 'OPTIONS' }),
    async ({ port }) => {
      const client = await SignallingClient.open(`ws://127.0.0.1:${port}/app/stream`);
      t.teardown(() => client.socket.terminate());
    },
    ({ registry }) => {
      const live = new LiveStream(registry, [picture]);
      t.teardown(() => live.close());
    },
  ];
  for (const cause of causes) {
    const server = await startWebrtc(t);
    t.is(server.pool.workers.length, 0);
    await cause(server);
    await until('a worker runs', () => server.pool.workers.length === 1);
  }
});
