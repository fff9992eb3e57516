import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { Guard } from '../../../src/access/guard.ts';
import { notedSessions } from '../../support/access/access.ts';
import { H264_VIDEO, offerOf } from '../../support/webrtc/offers.ts';
import { RtmpClient } from '../../support/rtmp/rtmp-client.ts';
import { startRtmp } from '../../support/rtmp/rtmp-server.ts';
import { startWebrtc } from '../../support/webrtc/webrtc-server.ts';

const PUBLISHERS = 200;
const ANSWER_MS = 1000;

/** A control server that answers after a second, and nobody before all have asked: who has to wait for another waits forever. */
function slow(ends: string[]) {
  const asked = Promise.withResolvers<void>();
  let count = 0;
  const guard: Guard = ({ stream }) => {
    return async () => {
      if (++count === PUBLISHERS) asked.resolve();
      await Promise.all([delay(ANSWER_MS), asked.promise]);
      return { session: { id: stream, vhost: 'default' } };
    };
  };
  return { guards: [guard], webhookSessions: notedSessions(ends) };
}

test.serial('publishers over RTMP do not wait for the answers that others wait for', async (t) => {
  const ends: string[] = [];
  const server = await startRtmp({ access: slow(ends) });
  t.teardown(() => server.close());
  const clients = await Promise.all(
    Array.from({ length: PUBLISHERS }, () => RtmpClient.connect({ port: server.port })),
  );
  t.teardown(() => clients.forEach((client) => client.close()));
  const begin = performance.now();
  await Promise.all(clients.map((client, index) => client.publish(`stream${index}`)));
  t.log(`${PUBLISHERS} publishers in ${Math.round(performance.now() - begin)} ms, answers take ${ANSWER_MS} ms`);
  t.is(server.server.sessions, PUBLISHERS);
  t.deepEqual(ends, []);
});

test.serial('publishers over WHIP do not wait for the answers that others wait for', async (t) => {
  const ends: string[] = [];
  const { url, registry } = await startWebrtc(t, { access: slow(ends) });
  const body = offerOf([{ ...H264_VIDEO, direction: 'sendonly' }]);
  const begin = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: PUBLISHERS }, async (_, index) => {
      const response = await fetch(`${url}/app/stream${index}?direction=whip`, {
        method: 'POST',
        headers: { 'content-type': 'application/sdp' },
        body,
      });
      await response.text();
      return response.status;
    }),
  );
  t.log(`${PUBLISHERS} publishers in ${Math.round(performance.now() - begin)} ms, answers take ${ANSWER_MS} ms`);
  t.true(statuses.every((status) => status === 201));
  t.is(registry.vhost('default').application('app').counters.providers.webrtc, PUBLISHERS);
  t.deepEqual(ends, []);
});
