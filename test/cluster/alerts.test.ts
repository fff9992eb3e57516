import { createHmac } from 'node:crypto';
import test from 'ava';
import type { Notification } from '../../src/alerts/notification.ts';
import { controlServer, json } from '../support/access/control-server.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { SCRAPE_TOKEN, scrape } from '../support/api/prometheus.ts';
import { until } from '../support/time/until.ts';

interface LoggedEvent {
  readonly node: string;
  readonly event: string;
  readonly stream?: string;
  readonly code?: string;
}

test('a stream that breaks a rule raises one alert in a cluster: for the server of Alert, in metrics and in events', async (t) => {
  const server = await controlServer(t, json({}));
  const redis = await usedRedis(t);
  const rules = '<Ingress><StreamStatus>true</StreamStatus><MinWidth>1280</MinWidth></Ingress>';
  const alert = `<Alert><Url>${server.url}</Url><SecretKey>secret</SecretKey><Rules>${rules}</Rules></Alert>`;
  const options = { server: alert, env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN } };
  const [a, b] = await Promise.all([startNode(t, redis, 'a', options), startNode(t, redis, 'b', options)]);
  const sent = () => server.questions.map(({ body }) => JSON.parse(body.toString()) as Notification);
  // one that is not acknowledged in time is sent again
  const codes = () => [...new Set(sent().flatMap(({ messages }) => messages.map(({ code }) => code)))];
  const events = async (event: string) =>
    (await b.api<LoggedEvent[]>('/v1/cluster/events')).body.response.filter((line) => line.event === event);

  const client = await PictureClient.publish(a, 'small');
  t.teardown(() => client.close());
  await b.liveStream('small');
  await until('its size is told', () => codes().includes('INGRESS_WIDTH_SMALL'));
  t.deepEqual(codes(), ['INGRESS_STREAM_CREATED', 'INGRESS_STREAM_PREPARED', 'INGRESS_WIDTH_SMALL']);
  for (const { headers, body } of server.questions)
    t.is(headers['x-ome-signature'], createHmac('sha1', 'secret').update(body).digest('base64url'));
  t.like(sent().at(-1), { serverInfo: { serverID: 'a' }, sourceUri: '#default#app/small', type: 'INGRESS' });
  t.like(await events('alert.raised'), {
    length: 1,
    0: { node: 'a', stream: '#default#app/small', code: 'INGRESS_WIDTH_SMALL' },
  });
  t.regex((await scrape(a)).text, /^kiln_alerts_total\{code="INGRESS_WIDTH_SMALL"\} 1$/m);
  t.regex((await scrape(b)).text, /^kiln_alerts_total\{code="INGRESS_WIDTH_SMALL"\} 0$/m);

  client.close();
  await until('its end is told', () => codes().includes('INGRESS_STREAM_DELETED') && codes().includes('OK'));
  t.is(codes().length, 5);
  await until('and is among the events', async () => (await events('alert.resolved')).length === 1);
});
