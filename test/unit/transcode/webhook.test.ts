import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Registry } from '../../../src/core/registry.ts';
import { decideProfiles, type ProfileDecision } from '../../../src/transcode/webhook.ts';
import { controlServer, json } from '../../support/access/control-server.ts';
import { until } from '../../support/time/until.ts';
import { issue } from '../../support/network/x509.ts';
import { AUDIO, RTMP, VIDEO, vhostConfig } from '../core/support.ts';

const profile = (name: string, video: object = { name: 'v', bypass: true }) => ({
  name,
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [video] },
});

/** Nothing listens there. */
const NOBODY = 'http://127.0.0.1:1/';

const LOCAL = { onDemand: true, outputProfile: [profile('local')] };
const USE_LOCAL = {
  useLocalProfilesOnConnectionFailure: true,
  useLocalProfilesOnServerDisallow: true,
  useLocalProfilesOnErrorResponse: true,
};
const USE_NONE = {
  useLocalProfilesOnConnectionFailure: false,
  useLocalProfilesOnServerDisallow: false,
  useLocalProfilesOnErrorResponse: false,
};

/** A live input of an application with this webhook. */
function publish(webhook: object | undefined) {
  const application = {
    name: 'app',
    type: 'live',
    outputProfiles: LOCAL,
    ...(webhook && { transcodeWebhook: { enable: true, timeout: 60_000, ...webhook } }),
  };
  const registry = new Registry();
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications: [application] }), true);
  const app = registry.vhost('default').application('app');
  const source = { ...RTMP, url: 'TCP://192.0.2.1:1234' };
  const input = app.publish('live', source, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO, AUDIO]);
  const lines: { reason?: string; ignored?: string[] }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as object) });
  return { input, lines, decide: () => decideProfiles(input, app, log) };
}

function names(decision: ProfileDecision): string[] {
  return 'profiles' in decision ? decision.profiles.outputProfile.map(({ name }) => name) : [decision.refused];
}

test('the profiles of the application are used without a webhook', async (t) => {
  t.deepEqual(names(await publish(undefined).decide()), ['local']);
  t.deepEqual(names(await publish({ enable: false, controlServerUrl: 'http://127.0.0.1:1/' }).decide()), ['local']);
});

test('the control server is asked with the stream as the API shows it, signed, and its profiles are taken', async (t) => {
  const encode = { name: 'v', codec: 'h264', bitrate: '2M', height: 720 };
  const { url, questions } = await controlServer(
    t,
    json({ allowed: true, outputProfiles: { outputProfile: [profile('remote', encode)] } }),
  );
  const { input, decide, lines } = publish({ controlServerUrl: url, secretKey: 'abc123!@#' });
  const decision = await decide();
  t.deepEqual(names(decision), ['remote']);
  t.like('profiles' in decision && decision.profiles, {
    onDemand: true,
    decodes: { threadCount: 2 },
    outputProfile: [{ encodes: { videos: [{ bitrate: 2_097_152, bFrames: undefined }] } }],
  });
  const [question] = questions;
  t.is(questions.length, 1);
  t.like(question, { method: 'POST', url: '/profiles?for=kiln' });
  t.like(question?.headers, { 'content-type': 'application/json', accept: 'application/json' });
  t.is(
    question?.headers['x-ome-signature'],
    createHmac('sha1', 'abc123!@#')
      .update(question?.body ?? '')
      .digest('base64url'),
  );
  const asked = JSON.parse(String(question?.body)) as { stream: { createdTime: string; tracks: object[] } };
  t.like(asked, {
    source: 'TCP://192.0.2.1:1234',
    stream: {
      name: 'live',
      virtualHost: 'default',
      application: 'app',
      sourceType: 'Rtmp',
      sourceUrl: 'TCP://192.0.2.1:1234',
    },
  });
  t.is(new Date(asked.stream.createdTime).getTime(), input.createdTime.getTime());
  t.like(asked.stream.tracks[0], { id: 0, type: 'Video', video: { codec: 'H264', width: 1280, height: 720 } });
  t.like(asked.stream.tracks[1], { id: 1, type: 'Audio', audio: { codec: 'AAC', samplerate: 48_000, channel: 2 } });
  t.deepEqual(lines, []);
});

test('a request without a secret key has no signature', async (t) => {
  const { url, questions } = await controlServer(t, json({ allowed: true }));
  const { decide } = publish({ controlServerUrl: url });
  t.deepEqual(names(await decide()), ['local'], 'an answer without profiles is for those of the application');
  t.false('x-ome-signature' in (questions[0]?.headers ?? {}));
});

test('the documented answer, with empty texts for what is not set and keys that mean nothing here', async (t) => {
  const none = { codec: '', bitrate: '', width: '', sar: '' };
  const video = {
    name: 'v',
    bypass: true,
    active: true,
    codec: '',
    profile: '',
    bitrate: '',
    width: 0,
    preset: '',
    bypassIfMatch: none,
  };
  const { url } = await controlServer(
    t,
    json({
      allowed: true,
      reason: '',
      outputProfiles: { hardwareAcceleration: true, outputProfile: [profile('remote', video)] },
    }),
  );
  const { decide, lines } = publish({ controlServerUrl: url });
  t.deepEqual(names(await decide()), ['remote']);
  t.deepEqual(lines[0]?.ignored, [
    'outputProfiles.outputProfile[0].encodes.videos[0].active: is unknown and has no effect',
    'outputProfiles.hardwareAcceleration: is unknown and has no effect',
  ]);
});

test('an empty list of profiles makes no output stream', async (t) => {
  const { url } = await controlServer(t, json({ allowed: true, outputProfiles: { outputProfile: [] } }));
  t.deepEqual(names(await publish({ controlServerUrl: url }).decide()), []);
});

type Policy = keyof typeof USE_NONE;

/** The outcome falls under this policy and no other, and says why. */
async function falls(t: ExecutionContext, policy: Policy, webhook: object, reason: RegExp): Promise<void> {
  const refusing = await publish({ ...webhook, ...USE_LOCAL, [policy]: false }).decide();
  t.true('refused' in refusing, `${policy}: ${String(reason)}`);
  t.regex('refused' in refusing ? refusing.refused : '', reason);
  t.true(names(refusing)[0]?.endsWith(`${policy} is false`));
  const { decide, lines } = publish({ ...webhook, ...USE_NONE, [policy]: true });
  t.deepEqual(names(await decide()), ['local']);
  t.regex(lines[0]?.reason ?? '', reason);
}

test('the three policies have the defaults of docs/compatibility.md#transcoding', async (t) => {
  t.deepEqual(names(await publish({ controlServerUrl: NOBODY }).decide()), ['local']);
  const disallowing = await controlServer(t, json({ allowed: false }));
  t.regex(
    names(await publish({ controlServerUrl: disallowing.url }).decide())[0] ?? '',
    /disallows it: no reason given/,
  );
  const failing = await controlServer(t, json({}, 500));
  t.regex(names(await publish({ controlServerUrl: failing.url }).decide())[0] ?? '', /status 500/);
});

test('a refusal by the control server falls back to local profiles where that is configured', async (t) => {
  const { url } = await controlServer(t, json({ allowed: false, reason: 'no budget' }));
  await falls(t, 'useLocalProfilesOnServerDisallow', { controlServerUrl: url }, /disallows it: no budget/);
});

const WRONG: readonly (readonly [name: string, answer: (response: ServerResponse) => void, reason: RegExp])[] = [
  ['a status of its own', (response) => void response.writeHead(404).end(), /status 404/],
  ['a redirect', (response) => void response.writeHead(302, { location: '/elsewhere' }).end(), /status 302/],
  ['no JSON', (response) => void response.end('<html>'), /something that is not JSON/],
  ['nothing', (response) => void response.end(), /something that is not JSON/],
  [
    'JSON nested past all reason',
    (response) => void response.end('['.repeat(200_000) + ']'.repeat(200_000)),
    /not JSON|not an object|a list/,
  ],
  ['a list', (response) => void response.end('[]'), /a list is not an object/],
  ['no word on whether it is allowed', (response) => void response.end('{}'), /allowed: is missing/],
  [
    'an allowed that is a text',
    (response) => void response.end('{"allowed":"true"}'),
    /allowed: "true" is not true or false/,
  ],
  [
    'profiles that are a text',
    (response) => void response.end('{"allowed":true,"outputProfiles":"x"}'),
    /outputProfiles: "x" is not an object/,
  ],
  [
    'a wrong profile',
    json({ allowed: true, outputProfiles: { outputProfile: [profile('p', { name: 'v' })] } }),
    /outputProfile\[0\]\.encodes\.videos\[0\]\.codec: is missing/,
  ],
  [
    'profiles of one name',
    json({ allowed: true, outputProfiles: { outputProfile: [profile('p'), profile('p')] } }),
    /"p" is given twice/,
  ],
  [
    'more than is taken',
    (response) => void response.end(Buffer.alloc(1024 * 1024 + 1, ' ')),
    /larger than 1048576 bytes/,
  ],
  [
    'without an end',
    (response) => {
      const pour = (): void => {
        while (response.write(Buffer.alloc(65_536, ' '))) continue;
        response.once('drain', pour);
      };
      pour();
    },
    /larger than 1048576 bytes/,
  ],
];

for (const [name, answer, reason] of WRONG) {
  test(`an error response: ${name}`, async (t) => {
    const { url } = await controlServer(t, answer);
    await falls(t, 'useLocalProfilesOnErrorResponse', { controlServerUrl: url }, reason);
  });
}

test('a server that is not there, by port and by name', async (t) => {
  const policy = 'useLocalProfilesOnConnectionFailure';
  await falls(t, policy, { controlServerUrl: NOBODY }, /ECONNREFUSED/);
  await falls(t, policy, { controlServerUrl: 'http://nowhere.invalid/' }, /ENOTFOUND|EAI_AGAIN/);
});

const BROKEN: readonly (readonly [name: string, answer: (response: ServerResponse) => void, reason: RegExp])[] = [
  ['a silent server', () => {}, /no answer within 300 ms/],
  ['a head without a body', (response) => void response.writeHead(200).flushHeaders(), /no answer within 300 ms/],
  [
    'a body that stops',
    (response) => void response.writeHead(200, { 'content-length': 100 }).write('{'),
    /no answer within 300 ms/,
  ],
  ['a connection that is cut', (response) => void response.socket?.destroy(), /socket hang up|ECONNRESET/],
  [
    'a body that is cut',
    (response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{', () => response.socket?.destroy());
    },
    /aborted|ECONNRESET/,
  ],
];

for (const [name, answer, reason] of BROKEN) {
  test(`a connection failure: ${name}`, async (t) => {
    const { url } = await controlServer(t, answer);
    const timeout = String(reason).includes('300 ms') ? 300 : 60_000;
    await falls(t, 'useLocalProfilesOnConnectionFailure', { controlServerUrl: url, timeout }, reason);
  });
}

/** A TCP server that says this to whoever connects. */
async function speaking(t: ExecutionContext, words: string): Promise<number> {
  const server = createServer((socket) => socket.on('error', () => {}).end(words));
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('a connection failure: a server that does not speak HTTP, one that would rather speak another protocol, one without TLS', async (t) => {
  const policy = 'useLocalProfilesOnConnectionFailure';
  const banner = await speaking(t, 'SSH-2.0-OpenSSH_9.2\r\n');
  await falls(t, policy, { controlServerUrl: `http://127.0.0.1:${banner}/` }, /Parse Error/);
  const switching = await speaking(
    t,
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
  );
  await falls(t, policy, { controlServerUrl: `http://127.0.0.1:${switching}/` }, /closed without an answer/);
  const { url } = await controlServer(t, json({ allowed: true }));
  await falls(t, policy, { controlServerUrl: url.replace('http:', 'https:') }, /SSL|EPROTO|wrong version/);
});

test('a connection failure: a certificate that no authority vouches for', async (t) => {
  const server = createTlsServer(issue('127.0.0.1'), (_, response) => response.end('{"allowed":true}'));
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => void server.close());
  const controlServerUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await falls(t, 'useLocalProfilesOnConnectionFailure', { controlServerUrl }, /certificate/);
});

test('a stream that ends while the server thinks gets nothing, whatever the policies', async (t) => {
  const { url, questions } = await controlServer(t, () => {});
  const { input, decide, lines } = publish({ controlServerUrl: url, ...USE_LOCAL });
  const decision = decide();
  await until('the question', () => questions.length === 1);
  input.close('the publisher left');
  t.deepEqual(names(await decision), ['the stream has ended']);
  t.deepEqual(lines, []);
});
