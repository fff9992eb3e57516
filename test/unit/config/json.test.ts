import test from 'ava';
import { Application } from '../../../src/config/elements/application.ts';
import { OutputProfile } from '../../../src/config/elements/output-profile.ts';
import { VirtualHost } from '../../../src/config/elements/vhost.ts';
import { keyPath } from '../../../src/config/names.ts';
import { readConfig } from '../../../src/config/read.ts';
import { explicit } from '../../../src/config/resolve.ts';

const app = { name: 'app', type: 'live' };
const encodes = { videos: [{ name: 'v', bypass: true }] };
const profile = { name: 'p', outputStreamName: '${OriginStreamName}', encodes };

/** First problem of an application, `path: message`. */
function problem(json: unknown, schema: Parameters<typeof readConfig>[0] = Application): string | undefined {
  const reading = readConfig(schema, json);
  if (reading.ok) return undefined;
  const [first] = reading.problems;
  return first === undefined ? '' : `${keyPath(first.path)}: ${first.message}`;
}

test('an application as the management API takes it', (t) => {
  const json = {
    ...app,
    type: 'LIVE',
    providers: { webrtc: { timeout: 60000 }, rtmp: {} },
    publishers: { llhls: { chunkDuration: 0.2 } },
    outputProfiles: { outputProfile: [{ ...profile, encodes: { audios: [{ codec: 'opus', bitrate: '128K' }] } }] },
  };
  const reading = readConfig(Application, json);
  if (!reading.ok) return t.fail(JSON.stringify(reading.problems));
  const { config } = reading;
  t.deepEqual(reading.warnings, []);
  t.is(config.type, 'live');
  t.is(config.providers.webrtc?.timeout, 60000);
  t.is(config.providers.srt, undefined);
  t.is(config.publishers.llhls?.partHoldBack, 3 * 0.2);
  t.is(config.outputProfiles.outputProfile[0]?.encodes.audios[0]?.name, 'audio_0');

  t.deepEqual(
    explicit(config),
    {
      ...app,
      providers: { webrtc: { timeout: 60000 }, rtmp: {} },
      publishers: { llhls: { chunkDuration: 0.2 } },
      outputProfiles: {
        outputProfile: [
          {
            ...profile,
            encodes: { videos: [], audios: [{ codec: 'opus', bitrate: 131072 }], images: [], data: [] },
          },
        ],
      },
    },
    'what was given, in canonical form, with the arrays that are always shown',
  );
  t.deepEqual(json.publishers, { llhls: { chunkDuration: 0.2 } }, 'the caller keeps its own');
});

test('explicit settings of an application never hold the default profile; the profile has its own', (t) => {
  const reading = readConfig(Application, app);
  if (!reading.ok) return t.fail();
  t.deepEqual(explicit(reading.config), app);
  const [byDefault] = reading.config.outputProfiles.outputProfile;
  t.like(explicit(byDefault as object), {
    name: 'default',
    encodes: { videos: [{ name: 'bypass_video', bypass: true }] },
  });
});

test('a virtual host shows its distribution, keeps its secrets, and nests applications', (t) => {
  const json = {
    name: 'v',
    host: { names: ['a.example', '*.b.example'], tls: { certPath: '/c', keyPath: '/k' } },
    signedPolicy: {
      policyQueryKeyName: 'p',
      signatureQueryKeyName: 's',
      secretKey: 'k',
      enables: { publishers: 'webrtc,llhls' },
    },
    origins: { origin: [{ location: '/a', pass: { scheme: 'ovt', urls: { url: ['h:9000/a'] } } }] },
    originMapStore: { originHostName: 'me', redisServer: { host: '10.0.0.1:6379', auth: 'secret' } },
    applications: [{ name: '*', type: 'live' }, app],
  };
  const reading = readConfig(VirtualHost, json);
  if (!reading.ok) return t.fail(JSON.stringify(reading.problems));
  t.deepEqual(explicit(reading.config), { ...json, distribution: 'ovenmediaengine.com' });
  t.is(reading.config.signedPolicy?.enables?.providers, '');
});

test('all parts of a read configuration are frozen', (t) => {
  const reading = readConfig(VirtualHost, { name: 'v', host: { names: ['*'] }, applications: [app] });
  if (!reading.ok) return t.fail();
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    t.true(Object.isFrozen(value));
    Object.values(value).forEach(walk);
  };
  walk(reading.config);
  walk(explicit(reading.config));
  for (const application of reading.config.applications) {
    application.outputProfiles.outputProfile.forEach((item) => walk(explicit(item)));
  }
});

test('inherited keys are not given, and words are taken in any case', (t) => {
  t.is(problem(Object.create(app)), 'name: is missing');
  const reading = readConfig(Application, { ...app, providers: { rtmp: { timestampMode: 'zerobased' } } });
  if (!reading.ok) return t.fail();
  t.is(reading.config.providers.rtmp?.timestampMode, 'ZeroBased');
  t.deepEqual(explicit(reading.config.providers), { rtmp: { timestampMode: 'ZeroBased' } });
});

test('two readings of a configuration share nothing that could be changed', (t) => {
  const one = readConfig(Application, app);
  const other = readConfig(Application, app);
  if (!one.ok || !other.ok) return t.fail();
  t.not(one.config.outputProfiles.outputProfile, other.config.outputProfiles.outputProfile);
  t.deepEqual(one.config, other.config);
});

test('both spellings of webRtcAutoAbr are one option', (t) => {
  for (const key of ['webRtcAutoAbr', 'webrtcAutoAbr']) {
    const playlist = { fileName: 'a', options: { [key]: false } };
    const reading = readConfig(OutputProfile, { ...profile, playlists: [playlist] });
    if (!reading.ok) return t.fail();
    t.false(reading.config.playlists[0]?.options.webRtcAutoAbr);
    t.deepEqual(reading.warnings, []);
  }
});

const refusals: readonly (readonly [json: unknown, line: string])[] = [
  [undefined, ': undefined is not an object'],
  [null, ': null is not an object'],
  [[], ': a list is not an object'],
  ['app', ': "app" is not an object'],
  [{}, 'name: is missing'],
  [{ name: 'app' }, 'type: is missing'],
  [{ ...app, name: 7 }, 'name: 7 is not a name (text without / and :)'],
  [{ ...app, name: '' }, 'name: "" is not a name (text without / and :)'],
  [{ ...app, name: null }, 'name: null is not a name (text without / and :)'],
  [{ ...app, type: ['live'] }, 'type: a list is not supported: only live is'],
  [{ ...app, providers: [] }, 'providers: a list is not an object'],
  [{ ...app, providers: { rtmp: true } }, 'providers.rtmp: true is not an object'],
  [
    { ...app, providers: { rtmp: { maxConnection: '5' } } },
    'providers.rtmp.maxConnection: "5" is not an integer of at least 0',
  ],
  [
    { ...app, providers: { rtmp: { blockDuplicateStreamName: 'true' } } },
    'providers.rtmp.blockDuplicateStreamName: "true" is not true or false',
  ],
  [
    { ...app, publishers: { llhls: { segmentDuration: Infinity } } },
    'publishers.llhls.segmentDuration: null is not a number (0.5..3600)',
  ],
  [{ ...app, outputProfiles: { outputProfile: {} } }, 'outputProfiles.outputProfile: an object is not a list'],
  [
    { ...app, outputProfiles: { outputProfile: [{ ...profile, encodes: { videos: ['v'] } }] } },
    'outputProfiles.outputProfile[0].encodes.videos[0]: "v" is not an object',
  ],
  [
    { ...app, outputProfiles: { outputProfile: [{ ...profile, encodes: { videos: [{}] } }] } },
    'outputProfiles.outputProfile[0].encodes.videos[0].codec: is missing (Bypass is not set)',
  ],
  [
    { ...app, providers: { mpegts: { streams: [{ name: 's', port: '99999' }] } } },
    'providers.mpegts.streams[0].port: "99999" is not a list of UDP ports (1..65535)',
  ],
];

for (const [json, line] of refusals) {
  test(`JSON of a configuration is rejected: ${line}`, (t) => t.is(problem(json), line));
}

test('keys that would reach the prototype are unknown keys', (t) => {
  const json = JSON.parse(
    '{"name":"a","type":"live","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},' +
      '"providers":{"__proto__":{"rtmp":{}}}}',
  );
  const reading = readConfig(Application, json);
  if (!reading.ok) return t.fail();
  t.deepEqual(
    reading.warnings.map(({ path }) => keyPath(path)),
    ['providers.__proto__', '__proto__', 'constructor'],
  );
  t.is(reading.config.providers.rtmp, undefined);
  t.is(({} as Record<string, unknown>)['polluted'], undefined);
  t.is(problem(JSON.parse('{"__proto__":{"name":"a","type":"live"}}')), 'name: is missing');
});

test('huge lists, huge texts and crowds of unknown keys are held within limits', (t) => {
  const names = (count: number): unknown => ({ name: 'v', host: { names: Array(count).fill('*') } });
  t.is(problem(names(4096), VirtualHost), undefined);
  t.is(problem(names(4097), VirtualHost), 'host.names: has 4097 items: more than 4096');
  t.true((problem({ ...app, type: 'x'.repeat(1e6) }) ?? '').length < 200);
  const crowd = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 1]));
  t.is(readConfig(Application, { ...app, ...crowd }).warnings.length, 100);
  const wrong = readConfig(VirtualHost, { name: 'v', host: { names: Array(4000).fill(1) } });
  t.false(wrong.ok);
  t.is(wrong.ok ? 0 : wrong.problems.length, 100);
});
