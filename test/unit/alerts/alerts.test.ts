import { createHmac } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Alerts, logAlerts } from '../../../src/alerts/index.ts';
import type { Notification } from '../../../src/alerts/notification.ts';
import { Alert } from '../../../src/config/elements/alert.ts';
import type { AlertConfig } from '../../../src/config/model.ts';
import { readConfig } from '../../../src/config/read.ts';
import { Registry } from '../../../src/core/registry.ts';
import { Queues } from '../../../src/stats/queues.ts';
import { controlServer, json } from '../../support/access/control-server.ts';
import { until } from '../../support/time/until.ts';
import { AUDIO, RTMP, VIDEO, vhostConfig } from '../core/support.ts';

const APPLICATIONS = [{ name: 'app', type: 'live' }];
const CONNECTION = { transport: 'TCP', protocol: 'TCP', remoteAddress: '192.0.2.7', remotePort: 5000 } as const;
const SOURCE = { ...RTMP, url: 'TCP://192.0.2.7:5000', connection: () => CONNECTION };

/** Alerts of a node whose operator's server answers with these statuses in turn, and 200 after them. */
async function open(t: ExecutionContext, config: object, statuses: number[] = [], hidesClients = false) {
  const server = await controlServer(t, (response) => json({}, statuses.shift() ?? 200)(response));
  const reading = readConfig(Alert, { url: server.url, ...config });
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  const registry = new Registry();
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications: APPLICATIONS }), true);
  const lines: { event?: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as object) });
  const sender = { id: 'node-1', name: 'Kiln', hidesClients };
  const queues = new Queues(registry);
  t.teardown(() => queues.close());
  const options = { registry, queues, config: reading.config as AlertConfig, sender, folder: '.', env: {}, log };
  const alerts = new Alerts(options);
  t.teardown(() => alerts.close());
  const application = registry.vhost('default').application('app');
  const publish = () => application.publish('live', SOURCE, { replace: false, maxConnections: 0 });
  const sent = () => server.questions.map(({ body }) => JSON.parse(body.toString()) as Notification);
  const codes = () => sent().flatMap(({ messages }) => messages.map(({ code }) => code));
  return { server, registry, application, alerts, publish, sent, codes, lines };
}

test('the life of streams is reported as far as the rules ask for it, in order', async (t) => {
  const { publish, application, registry, codes, sent } = await open(t, {
    rules: { ingress: { streamStatus: true }, egress: { streamStatus: true, llhlsReady: true } },
  });
  const input = publish();
  input.setTracks([VIDEO, AUDIO]);
  const output = application.addOutput(input, 'live_hd');
  output.setTracks([VIDEO, AUDIO]);
  application.announce(output);
  for (const kind of ['llhls', 'llhls', 'hlsv3'] as const) registry.emit('packaged', output, application, kind);
  registry.emit('duplicate', application.internalName, 'live');
  input.close('the publisher left');
  const wanted = [
    'INGRESS_STREAM_CREATED',
    'INGRESS_STREAM_PREPARED',
    'EGRESS_STREAM_CREATED',
    'EGRESS_STREAM_PREPARED',
    'EGRESS_LLHLS_READY',
    'INGRESS_STREAM_CREATION_FAILED_DUPLICATE_NAME',
    'EGRESS_STREAM_DELETED',
    'INGRESS_STREAM_DELETED',
  ];
  await until('all are told', () => codes().length >= wanted.length);
  t.deepEqual(codes(), wanted);
  t.like(sent()[1], {
    sourceUri: '#default#app/live',
    type: 'INGRESS',
    serverInfo: { serverID: 'node-1', serverName: 'Kiln' },
    sourceInfo: { name: 'live', sourceType: 'Rtmp', sourceUrl: SOURCE.url, connection: { remoteAddress: '192.0.2.7' } },
  });
  t.like(sent()[3], {
    sourceUri: '#default#app/live_hd',
    type: 'EGRESS',
    sourceInfo: { name: 'live_hd' },
    parentSourceInfo: { name: 'live' },
  });
});

test('a relay of the stream of another node causes no alert', async (t) => {
  const { application, publish, codes } = await open(t, {
    rules: { ingress: { streamStatus: true }, egress: { streamStatus: true } },
  });
  const relay = application.relay('far', 'far', { type: 'Ovt', kind: 'ovt' });
  relay.input.setTracks([VIDEO]);
  relay.setTracks([VIDEO]);
  application.announce(relay);
  relay.input.close('its owner has gone');
  publish();
  await until('something is told', () => codes().length > 0);
  t.deepEqual(codes(), ['INGRESS_STREAM_CREATED']);
});

test('alerts of other parts are sent without any rule, signed over the bytes of the body', async (t) => {
  const { server, registry, application, publish, sent } = await open(t, { secretKey: 'secret' });
  const stream = publish();
  const messages = [{ code: 'EGRESS_TRANSCODE_FAILED_ENCODING', description: 'the encoder died' }];
  registry.emit('alert', { application, stream, name: 'live', type: 'EGRESS', messages });
  await until('it is sent', () => server.questions.length > 0);
  const [question] = server.questions;
  t.deepEqual(sent()[0]?.messages, messages);
  t.is(
    question?.headers['x-ome-signature'],
    createHmac('sha1', 'secret')
      .update(question?.body ?? '')
      .digest('base64url'),
  );
  t.is(question?.headers['content-type'], 'application/json');
});

test('no alert has the address of a publisher with PrivacyProtection', async (t) => {
  const { publish, sent } = await open(t, { rules: { ingress: { streamStatus: true } } }, [], true);
  publish();
  await until('it is sent', () => sent().length > 0);
  t.false(JSON.stringify(sent()[0]?.sourceInfo).includes('"remoteAddress":"192.0.2.7"'));
});

test('a server that is away gets each alert once it is back; one that refuses an alert does not get it again', async (t) => {
  const { publish, codes, lines } = await open(t, { rules: { ingress: { streamStatus: true } } }, [503, 502, 200, 400]);
  const input = publish();
  input.setTracks([VIDEO]);
  input.close('the publisher left');
  await until('all are told', () => codes().length === 5);
  t.deepEqual(codes(), [
    'INGRESS_STREAM_CREATED',
    'INGRESS_STREAM_CREATED',
    'INGRESS_STREAM_CREATED',
    'INGRESS_STREAM_PREPARED',
    'INGRESS_STREAM_DELETED',
  ]);
  const events = () => lines.flatMap(({ event }) => (event === undefined ? [] : [event]));
  await until('its return is logged', () => events().length === 4);
  t.deepEqual(events(), ['alert.undelivered', 'alert.delivered', 'alert.undelivered', 'alert.delivered']);
});

test('the end of a node does not wait long for a server that is away, and says what was lost', async (t) => {
  const { publish, alerts, lines } = await open(
    t,
    { rules: { ingress: { streamStatus: true } } },
    Array.from({ length: 100 }, () => 503),
  );
  publish();
  await until('it is tried', () => lines.length > 0);
  await alerts.close();
  t.like(lines.at(-1), { event: 'alert.lost', count: 1 });
  t.is(alerts.undelivered, 1);
});

test('a server that refuses an alert did not get it, and the metrics know', async (t) => {
  const { publish, alerts, codes } = await open(t, { rules: { ingress: { streamStatus: true } } }, [400]);
  const input = publish();
  input.setTracks([VIDEO]);
  await until('both were sent', () => codes().length === 2);
  t.is(alerts.undelivered, 1);
});

test('closed alerts listen to nothing any more, though their streams live on', async (t) => {
  const { registry, application, alerts, publish, codes } = await open(t, {
    rules: { ingress: { streamStatus: true }, egress: { streamStatus: true, llhlsReady: true } },
  });
  const input = publish();
  input.setTracks([VIDEO]);
  application.addOutput(input, 'live_hd');
  await until('all are told', () => codes().length === 3);
  await alerts.close();
  t.deepEqual(
    registry.eventNames().filter((event) => registry.listenerCount(event) > 0),
    [],
  );
  input.close('the publisher left');
  t.is(codes().length, 3);
});

test('each alert is logged, and counted by its codes, whether or not it is sent', (t) => {
  const registry = new Registry();
  const vhost = registry.createVhost(
    vhostConfig({ name: 'default', host: { names: ['*'] }, applications: APPLICATIONS }),
    true,
  );
  const lines: object[] = [];
  const raised = logAlerts(
    registry,
    pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as object) }),
  );
  const alert = (codes: readonly string[], resolved = false) =>
    registry.emit('alert', {
      application: vhost.application('app'),
      stream: undefined,
      name: 'live',
      type: 'INGRESS',
      messages: codes.map((code) => ({ code, description: `what ${code} means` })),
      resolved,
    });
  alert(['INGRESS_BITRATE_LOW', 'INGRESS_HAS_BFRAME']);
  alert(['INGRESS_BITRATE_LOW']);
  alert(['OK'], true);
  t.true(raised.has('SCHEDULE_GAP'));
  t.deepEqual(
    [...raised].filter(([, count]) => count > 0),
    [
      ['INGRESS_BITRATE_LOW', 2],
      ['INGRESS_HAS_BFRAME', 1],
    ],
  );
  t.like(lines, {
    length: 3,
    0: { event: 'alert.raised', code: 'INGRESS_BITRATE_LOW INGRESS_HAS_BFRAME', stream: '#default#app/live' },
    2: { event: 'alert.resolved', msg: 'what OK means' },
  });
});

test('a fault of a source that a provider reports needs no rule', async (t) => {
  const { publish, codes } = await open(t, {});
  publish().emit('trouble', 'INGRESS_CLOCK_DRIFT', 'its clocks differ');
  await until('the alert', () => codes().length > 0);
  t.deepEqual(codes(), ['INGRESS_CLOCK_DRIFT']);
});
