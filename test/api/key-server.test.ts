import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openKeyServer, answerOf, keyOfId, send, WIDEVINE_ID, type KeyQuestion } from '../support/drm/key-server.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { feeder } from '../support/hls/llhls-nodes.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../support/media/packets.ts';
import { until } from '../support/time/until.ts';

type Server = Awaited<ReturnType<typeof openKeyServer>>;

/** An application with key servers, without a stream yet. */
async function open(t: ExecutionContext, server: Server, more: object = {}, drm: object = {}) {
  // as JSON, without what is undefined
  const keyServer: unknown = JSON.parse(
    JSON.stringify({ url: server.url, certificateFingerprint: server.fingerprint, ...more }),
  );
  const opened = await openLlhls(t, {
    llhls: {
      ...{ segmentDuration: 1, chunkDuration: 0.5, segmentCount: 20 },
      drm: { enable: true, keyServer: [keyServer], ...drm },
    },
  });
  const tracks = [videoTrack({ id: 0, config: AVC_HIGH }), audioTrack({ id: 1 })];
  const publish = (name = 'stream') => {
    const { input, output } = opened.goLive(tracks, name);
    return { input, feed: feeder(output), own: () => opened.publisher.live(opened.application, name) };
  };
  const said = (message: string) => opened.lines.filter(({ msg }) => msg === message);
  const master = async (name = 'stream') => await opened.get(`/app/${name}/llhls.m3u8`);
  return { ...opened, publish, said, master };
}

type Opened = Awaited<ReturnType<typeof open>>;

async function openStream(t: ExecutionContext, server: Server, more: object = {}, drm: object = {}) {
  const opened = await open(t, server, more, drm);
  const stream = opened.publish();
  const own = await until('the stream is there', () => stream.own());
  stream.feed(4.3);
  return { ...opened, ...stream, own };
}

const urlOfVideo = async ({ children }: Pick<Opened, 'children'>): Promise<string> =>
  (await children()).find((uri) => uri.includes('chunklist_0_')) ?? '';

async function videoList(opened: Pick<Opened, 'get' | 'children'>): Promise<string> {
  return (await opened.get(await urlOfVideo(opened))).body;
}

/** Initializations that a playlist of video names, in order. */
async function inits(opened: Pick<Opened, 'get' | 'children'>, list: string): Promise<Buffer[]> {
  const url = await urlOfVideo(opened);
  const files = [...list.matchAll(/MAP:URI="([^"]+)"/g)].map(
    ([, uri = '']) => new URL(uri, `http://kiln${url}`).pathname,
  );
  return await Promise.all(files.map(async (file) => (await opened.get(file)).rawPayload));
}

function keysNowhere(t: ExecutionContext, { lines }: Pick<Opened, 'lines'>, questions: readonly KeyQuestion[]): void {
  const text = JSON.stringify(lines);
  for (const { kid } of questions)
    for (const form of ['hex', 'base64'] as const) t.false(text.includes(keyOfId(kid).toString(form)));
}

test('a stream is encrypted with the key that its key server gives, for three key systems', async (t) => {
  const server = await openKeyServer(t);
  const systems = 'FairPlay, widevine,PlayReady';
  const opened = await openStream(t, server, { systems, userName: 'kiln', password: 'pass:word' });
  const [question] = server.questions as [KeyQuestion];
  t.is(question.contentId, 'default_app_stream');
  t.is(question.scheme, 'cbcs');
  t.is(question.systemIds.length, 3);
  t.is(question.headers.authorization, `Basic ${Buffer.from('kiln:pass:word').toString('base64')}`);
  t.deepEqual(server.refused, []);
  const { body } = await opened.master();
  t.is(body.split('#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,').length, 4);
  const list = await videoList(opened);
  t.is(list.split('#EXT-X-KEY:METHOD=SAMPLE-AES,').length, 4);
  t.true(list.includes(`URI="skd://${question.kid}"`));
  t.true(list.includes('KEYFORMAT="com.microsoft.playready"'));
  const [init] = (await inits(opened, list)) as [Buffer];
  t.true(init.includes('encv') && init.includes(Buffer.from(question.kid.replaceAll('-', ''), 'hex')));
  t.is(init.toString('latin1').split('pssh').length, 3);
  keysNowhere(t, opened, server.questions);
  t.false(JSON.stringify(opened.lines).includes('pass:word'));
});

test('a stream with DVR whose key comes late has no media of before', async (t) => {
  const server = await openKeyServer(t);
  const held: (() => void)[] = [];
  server.answer((response, question) => void held.push(() => send(response, answerOf(question))));
  const tempStoragePath = await mkdtemp(join(tmpdir(), 'kiln-dvr-'));
  t.teardown(() => rm(tempStoragePath, { recursive: true }));
  const keyServer = { url: server.url, certificateFingerprint: server.fingerprint };
  const opened = await openLlhls(t, {
    llhls: {
      ...{ segmentDuration: 2, chunkDuration: 0.5, segmentCount: 20 },
      drm: { enable: true, keyServer: [keyServer] },
      dvr: { enable: true, tempStoragePath, maxDuration: 600 },
    },
  });
  const { output } = opened.goLive([videoTrack({ id: 0, config: AVC_HIGH }), audioTrack({ id: 1 })]);
  const feed = feeder(output);
  feed(3.3);
  await until('the key server was asked', () => held.length > 0);
  feed(5.1);
  for (const answer of held) answer();
  await until('the stream is there', () => opened.publisher.live(opened.application, 'stream'));
  feed(12.1);
  const list = await videoList(opened);
  const seconds = [...list.matchAll(/#EXTINF:([\d.]+)/g)].reduce((sum, [, one]) => sum + Number(one), 0);
  t.is(Math.round(seconds), 6, list);
});

test('a request is signed with Signature Version 4', async (t) => {
  const server = await openKeyServer(t);
  await openStream(t, server, { accessKeyId: 'AKID', secretAccessKey: 'secret', region: 'eu-west-1' });
  const { authorization = '' } = server.questions[0]?.headers ?? {};
  t.regex(
    authorization,
    /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/execute-api\/aws4_request, SignedHeaders=host;x-amz-date, Signature=[0-9a-f]{64}$/,
  );
});

test('the first KeyServer whose StreamName matches counts, and without one a stream is in clear with a warning', async (t) => {
  const server = await openKeyServer(t);
  const one = { url: server.url, certificateFingerprint: server.fingerprint };
  const opened = await open(
    t,
    server,
    {},
    {
      keyServer: [
        { ...one, streamName: 'tv-*', contentId: 'tv/${StreamName}', cencProtectScheme: 'cenc' },
        { ...one, streamName: '*-?', contentId: '${VHostName}.${AppName}.${Other}' },
      ],
    },
  );
  for (const name of ['tv-1', 'radio-1', 'other']) {
    const { own, feed } = opened.publish(name);
    await until('the stream is there', own);
    feed(3);
  }
  const facts = server.questions.slice(0).map(({ contentId, scheme, index }) => [contentId, scheme, index]);
  t.deepEqual(
    facts.filter(([, , index]) => index === undefined),
    [
      ['tv/tv-1', 'cenc', undefined],
      ['default.app.${Other}', 'cbcs', undefined],
    ],
  );
  t.regex((await opened.master('tv-1')).body, /SESSION-KEY:METHOD=SAMPLE-AES-CTR/);
  t.notRegex((await opened.master('other')).body, /SESSION-KEY/);
  t.is(opened.said('the stream is published in clear: no entry of DRM matches it').length, 1);
});

const FAILURES: Readonly<Record<string, readonly [(server: Server) => void, RegExp]>> = {
  'answers with an error': [
    ({ answer }) => answer((response) => send(response, 'no such customer', 403)),
    /^127\.0\.0\.1:\d+: it answered with status 403$/,
  ],
  'redirects to another host': [
    ({ answer }) => answer((response) => void response.writeHead(307, { location: 'https://other.example/x' }).end()),
    /it redirects to other\.example: /,
  ],
  'answers without end': [
    ({ answer }) =>
      answer((response) => {
        response.writeHead(200);
        const more = (): void =>
          void (response.destroyed || response.write('x'.repeat(65536), () => setImmediate(more)));
        more();
      }),
    /the answer is larger than 262144 bytes/,
  ],
  'breaks off': [
    ({ answer }) =>
      answer((response, question) => {
        response.writeHead(200, { 'content-length': 5000 }).write(answerOf(question).slice(0, 300));
        setImmediate(() => response.destroy());
      }),
    /aborted|closed|reset|terminated/i,
  ],
  'gives the key of another KeyId': [
    ({ answer }) =>
      answer((response, question) =>
        send(response, answerOf(question, { kid: '22222222-2222-2222-2222-222222222222' })),
      ),
    /another KeyId than was asked for/,
  ],
  'gives a key of another length': [
    ({ answer }) => answer((response, question) => send(response, answerOf(question, { key: Buffer.alloc(8) }))),
    /has 8 bytes, not 16/,
  ],
};

for (const [what, [fail, reason]] of Object.entries(FAILURES)) {
  test(`while its key server ${what}, a stream is not published, and after that it is`, async (t) => {
    const server = await openKeyServer(t);
    fail(server);
    const opened = await open(t, server);
    const { own, feed } = opened.publish();
    const message = 'the stream is not published yet: its key server gave no key, and is asked again';
    await until('the failure is logged', () => opened.said(message).length > 0);
    t.regex(String(opened.said(message)[0]?.['reason']), reason);
    t.is(own(), undefined);
    t.is((await opened.master()).statusCode, 404);
    server.recover();
    await until('the stream is there', own);
    feed(3);
    t.regex((await opened.master()).body, /#EXT-X-SESSION-KEY/);
    t.is(opened.said(message).length, 1);
    t.true(opened.publisher.counts.keys.requestFailures > 0);
    t.true(opened.publisher.counts.keys.requests > opened.publisher.counts.keys.requestFailures);
  });
}

test('nothing is sent to a server with another certificate, and none is trusted without a fingerprint', async (t) => {
  const server = await openKeyServer(t);
  const message = 'the stream is not published yet: its key server gave no key, and is asked again';
  for (const [fingerprint, reason] of [
    ['ab'.repeat(32), /certificate of the server is another than the pinned one/],
    [undefined, /self-signed certificate/],
  ] as const) {
    const { publish, said } = await open(t, server, { certificateFingerprint: fingerprint });
    publish();
    await until('the failure is logged', () => said(message).length > 0);
    t.regex(String(said(message)[0]?.['reason']), reason);
  }
  t.deepEqual([server.questions, server.refused], [[], []]);
});

test('a stream that ends while it waits for its key is not asked for any more', async (t) => {
  const server = await openKeyServer(t);
  server.answer((response) => send(response, '', 503));
  const { publish, publisher, application } = await open(t, server);
  const { input } = publish();
  await until('it was asked', () => server.questions.length > 0);
  input.close('the publisher left');
  server.recover();
  const again = publish();
  await until('the next stream is there', again.own);
  t.not(publisher.live(application, 'stream'), undefined);
});

test('with ClearLead a stream begins in clear while its key server is down, and is encrypted from a segment on', async (t) => {
  const server = await openKeyServer(t);
  server.answer((response) => send(response, '', 503));
  const opened = await open(t, server, { clearLead: true, systems: 'FairPlay' });
  const { own, feed } = opened.publish();
  const { stream } = await until('the stream is there', own);
  t.is(opened.said('the stream is published in clear: its key server gave no key, and ClearLead is on').length, 1);
  feed(4.3);
  t.throws(() => stream.rotateKey(), { code: 'keyNotRotated' });
  t.notRegex((await opened.master()).body, /KEY/);
  t.notRegex(await videoList(opened), /KEY/);
  server.recover();
  await until('it has a key', () => opened.said('the stream is encrypted from the next segment on').length > 0);
  feed(9.3);
  const list = await videoList(opened);
  t.regex(list, /\nseg_0_\d+_[^]*#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd:[^]*#EXT-X-MAP[^]*\nseg_0_\d+_/);
  t.is(list.split('#EXT-X-MAP').length, 3);
  t.notRegex(list, /DISCONTINUITY/);
  t.regex((await opened.master()).body, /#EXT-X-SESSION-KEY/);
  t.deepEqual(
    (await inits(opened, list)).map((init) => init.includes('encv')),
    [false, true],
  );
});

test('the key of the next period is there ahead, and periods are counted by the clock', async (t) => {
  const server = await openKeyServer(t);
  const before = Math.floor(Date.now() / 3_600_000);
  const opened = await openStream(t, server, { systems: 'FairPlay' }, { keyRotationPeriod: 3600 });
  await until('the next key was asked for', () => server.questions.length > 1);
  const [first = 0, second = 0] = server.questions.map(({ index }) => Number(index));
  t.true(first >= before && first <= before + 1);
  t.is(second, first + 1);
  const next = opened.publisher.counts.keys.earliest ?? 0;
  t.is(next % 3_600_000, 0);
  server.answer((response) => send(response, '', 503));
  await until('the next key is there', () => {
    try {
      opened.own.stream.rotateKey();
      return true;
    } catch {
      return false;
    }
  });
  opened.feed(7.3);
  const kids = server.questions.map(({ kid }) => kid);
  const keys = async () => [...(await videoList(opened)).matchAll(/URI="skd:..([^"]+)"/g)].map(([, kid]) => kid);
  t.deepEqual(await keys(), kids.slice(0, 2));
  const error = t.throws(() => opened.own.stream.rotateKey(), { code: 'keyNotRotated' });
  t.regex(String(error?.message), /its key server has not answered yet|status 503/);
  await until(
    'the failure is logged',
    () => opened.said('the key server gave no key for the next period, and is asked again').length > 0,
  );
  opened.feed(9.3);
  t.deepEqual(await keys(), kids.slice(0, 2), 'the present key is used on');
  server.recover();
  await until('the key server answers again', () => opened.said('the key server answers again').length > 0);
  await until('the key after that is there', () => {
    try {
      opened.own.stream.rotateKey();
      return true;
    } catch {
      return false;
    }
  });
  opened.feed(12.3);
  t.is((await keys()).length, 3);
  keysNowhere(t, opened, server.questions);
});

test('Widevine alone is asked for with its box', async (t) => {
  const server = await openKeyServer(t);
  await openStream(t, server, { systems: 'Widevine' });
  t.deepEqual(server.questions[0]?.systemIds, [WIDEVINE_ID]);
  t.is(server.questions[0]?.body.split('<cpix:PSSH>').length, 2);
});
