import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Cluster } from '../../../src/config/elements/cluster.ts';
import { OutputProfile } from '../../../src/config/elements/output-profile.ts';
import { OverlayMap } from '../../../src/config/elements/overlay-map.ts';
import { ConfigError, loadConfig } from '../../../src/config/load.ts';
import { readConfig } from '../../../src/config/read.ts';
import { XmlToJson } from '../../../src/config/xml-json.ts';
import { parseXml } from '../../../src/config/xml.ts';
import type { MapFormat } from '../../../src/tasks/configured/map-format.ts';
import { readMap } from '../../../src/tasks/configured/read-map.ts';
import { PUSH_MAP } from '../../../src/pushing/stream-map.ts';
import { recordMap } from '../../../src/recording/stream-map.ts';
import { application, load, serverXml, vhost } from './support.ts';

const CONFIG = join(import.meta.dirname, '../../../config');

test('the default configuration', async (t) => {
  const { config, warnings, generatedAccessToken } = await loadConfig(join(CONFIG, 'Server.xml'), {
    env: { KILN_ACCESS_TOKEN: 'user:password' },
  });
  t.deepEqual(warnings, []);
  t.is(generatedAccessToken, undefined);
  t.is(config.managers?.api.accessToken, 'user:password');
  t.deepEqual(config.ip, ['*']);
  t.is(config.bind.managers.api?.port, 8081);
  t.is(config.bind.providers.rtmp?.port, 1935);
  t.is(config.bind.publishers.llhls?.port, 3333);
  t.is(config.bind.publishers.webrtc?.signalling.port, 3333);
  t.deepEqual(config.bind.publishers.webrtc?.iceCandidates.iceCandidate, [
    { address: '*', first: 10000, last: 10004, protocol: 'udp' },
    { address: '*', first: 10000, last: 10004, protocol: 'tcp' },
  ]);
  t.true(config.modules.ertmp.enable);
  t.is(config.virtualHosts.length, 1);
  const [vhost] = config.virtualHosts;
  t.is(vhost?.name, 'default');
  t.deepEqual(vhost?.host.names, ['*']);
  const [app] = vhost?.applications ?? [];
  t.is(app?.name, 'app');
  t.deepEqual(Object.keys(app?.providers ?? {}), ['rtmp', 'srt', 'rtspPull', 'ovt', 'webrtc', 'schedule', 'multiplex']);
  t.deepEqual(config.bind.providers.srt?.port, [{ first: 9999, last: 9999 }]);
  t.deepEqual(config.bind.publishers.srt?.port, [{ first: 9998, last: 9998 }]);
  t.true(app?.providers.rtmp?.blockDuplicateStreamName);
  t.like(app?.publishers.llhls, {
    chunkDuration: 0.5,
    segmentDuration: 2,
    segmentCount: 10,
    partHoldBack: 1.5,
    crossDomains: { url: ['*'] },
  });
  t.not(app?.publishers.webrtc, undefined);
  t.deepEqual(
    app?.outputProfiles.outputProfile.map(({ name }) => name),
    ['default'],
  );
});

test('the default configuration without a token in the environment gets a random one, a new one each time', async (t) => {
  const tokens = new Set<string>();
  for (let round = 0; round < 2; round++) {
    const { config, generatedAccessToken } = await loadConfig(join(CONFIG, 'Server.xml'), { env: {} });
    t.regex(generatedAccessToken ?? '', /^kiln:[0-9a-f]{32}$/);
    t.is(config.managers?.api.accessToken, generatedAccessToken);
    tokens.add(generatedAccessToken ?? '');
  }
  t.is(tokens.size, 2);
});

/** A sample's text with the comments taken away that are nothing but elements. */
function uncommented(text: string): string {
  return text.replace(/<!--\s*(<[A-Z][\s\S]*?>)\s*-->/g, '$1');
}

test('commented examples of the default configuration are valid', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-sample-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const text = uncommented(await readFile(join(CONFIG, 'Server.xml'), 'utf8'));
  const vhost = text
    .slice(text.indexOf('<VirtualHosts>'))
    .replace(/<TLS>[\s\S]*?<\/TLS>/, '')
    .replace(/<VirtualHost include[^>]*>/, '');
  const file = join(folder, 'Server.xml');
  const head =
    '<Server version="8"><Type>origin</Type><IP>*</IP><Bind><Providers><RTMP><Port>1935</Port></RTMP></Providers></Bind>';
  await writeFile(file, head + vhost);
  const secrets = ['KILN_TRANSCODE_SECRET', 'KILN_RECORD_SECRET', 'KILN_S3_KEY_ID', 'KILN_S3_KEY'];
  const env = Object.fromEntries(secrets.map((name) => [name, 'secret']));
  const { config, warnings } = await loadConfig(file, { env });
  t.deepEqual(warnings, []);
  const [app] = config.virtualHosts[0]?.applications ?? [];
  t.like(app?.publishers.file?.record, {
    webhook: { secretKey: 'secret', timeout: 3000 },
    upload: { bucket: 'records', forcePathStyle: true, deleteLocal: false },
  });
  t.like(app, {
    transcodeWebhook: { enable: true, secretKey: 'secret' },
    outputProfiles: { outputProfile: [{ name: 'two', playlists: [{ fileName: 'abr' }] }] },
  });
});

test('the cluster example of the default configuration is valid', async (t) => {
  const text = await readFile(join(CONFIG, 'Server.xml'), 'utf8');
  const [sample = ''] = /<Cluster>\s*<Name>[\s\S]*?<\/Node>\s*<\/Cluster>/.exec(text) ?? [];
  const ways = [...text.matchAll(/^ +Redis [^:]*: +(<.*>)$/gm)].map(([, way = '']) => way);
  t.is(ways.length, 2);
  const others = ways.map((way) => sample.replace(/<Url>.*<\/Url>/, way));
  for (const xml of [sample, ...others]) {
    const mapper = new XmlToJson();
    const reading = readConfig(Cluster, mapper.map(Cluster, parseXml(xml, 'Server.xml'), 'Cluster'));
    t.true(reading.ok);
    t.deepEqual([...mapper.problems, ...mapper.warnings, ...reading.warnings], []);
    t.like(reading.ok && reading.config, {
      node: { drainTimeout: 30_000, tls: { caCertPath: '/etc/kiln/nodes-ca.crt' } },
    });
  }
});

test('the configuration of a node in a cluster takes its settings from the environment', async (t) => {
  const env = { KILN_ACCESS_TOKEN: 't', KILN_CLUSTER_SECRET: 's', KILN_NODE_ID: 'n', KILN_ADVERTISE_ADDRESS: 'h' };
  const { config, warnings } = await loadConfig(join(CONFIG, 'cluster.xml'), {
    env: { ...env, KILN_PROXY_NETWORKS: '10.0.0.9' },
  });
  t.deepEqual(
    warnings.filter((line) => !line.startsWith('Cluster ')),
    [],
  );
  t.like(config.cluster, { secret: 's', redis: { password: '' }, node: { id: 'n', advertiseAddress: 'h' } });
  t.is(config.modules.proxyProtocol?.networks.length, 1);
  t.is(config.modules.forwardedFor?.networks.length, 0);
  const [app] = config.virtualHosts[0]?.applications ?? [];
  t.deepEqual(Object.keys(app?.providers ?? {}).sort(), [
    'multiplex',
    'ovt',
    'rtmp',
    'rtspPull',
    'schedule',
    'srt',
    'webrtc',
  ]);
  for (const way of ['file', 'hls', 'llhls', 'ovt', 'push', 'srt', 'thumbnail', 'webrtc'] as const)
    t.not(app?.publishers[way], undefined, way);
  for (const name of Object.keys(env)) {
    await t.throwsAsync(loadConfig(join(CONFIG, 'cluster.xml'), { env: { ...env, [name]: undefined } }), {
      instanceOf: ConfigError,
    });
  }
});

test('the transcoding configuration', async (t) => {
  const { config, warnings } = await loadConfig(join(CONFIG, 'transcode.xml'), { env: {} });
  t.deepEqual(warnings, []);
  t.is(config.bind.publishers.thumbnail?.port, 3333);
  const [app] = config.virtualHosts[0]?.applications ?? [];
  t.not(app?.publishers.thumbnail, undefined);
  t.false(app?.outputProfiles.onDemand);
  const [profile] = app?.outputProfiles.outputProfile ?? [];
  const names = (encodes: readonly { name: string }[] = []) => encodes.map(({ name }) => name);
  t.deepEqual(names(profile?.encodes.videos), ['720p', '480p', '240p']);
  t.deepEqual(names(profile?.encodes.audios), ['aac', 'opus']);
  t.like(profile?.encodes.images[0], { codec: 'jpeg', height: 360, framerate: 1 });
  t.deepEqual(
    profile?.playlists.map(({ fileName, renditions, rendition_templates: { length } }) => [
      fileName,
      renditions.length,
      length,
    ]),
    [
      ['llhls', 3, 0],
      ['webrtc_default', 0, 1],
    ],
  );
  const encodes = new Set([...names(profile?.encodes.videos), ...names(profile?.encodes.audios)]);
  for (const { video = '', audio = '' } of profile?.playlists[0]?.renditions ?? [])
    t.true(encodes.has(video) && encodes.has(audio));
});

test('the minimal configuration', async (t) => {
  const { config, warnings, generatedAccessToken } = await loadConfig(join(CONFIG, 'minimal.xml'), { env: {} });
  t.deepEqual(warnings, []);
  t.is(generatedAccessToken, undefined);
  t.deepEqual(config.bind, {
    managers: {},
    providers: { rtmp: { port: 1935, threadPerSocket: false } },
    publishers: { llhls: { port: 3333 } },
  });
  t.is(config.managers, undefined);
});

/** The first code block of a page in docs/ that holds this text, without comments. */
async function docsBlock(page: string, holding: string): Promise<string> {
  const text = await readFile(join(CONFIG, '../docs', page), 'utf8');
  const block = text
    .split('```')
    .filter((_, index) => index % 2 === 1)
    .find((code) => code.includes(holding));
  return (block ?? '').replace(/^(xml|sh)\n/, '').replaceAll(/ *<!--.*?-->/g, '');
}

test('output profiles in the documentation are valid', async (t) => {
  const { config, warnings } = await load(
    t,
    serverXml({
      apps: application(
        (await docsBlock('transcode.md', '<OutputProfiles>')) +
          (await docsBlock('transcode.md', '<TranscodeWebhook>')) +
          (await docsBlock('access.md', '<Limits>')),
      ),
    }),
    { KILN_TRANSCODE_SECRET: 'secret' },
  );
  t.deepEqual(warnings, []);
  t.like(config.virtualHosts[0]?.applications[0], {
    outputProfiles: {
      outputProfile: [
        { name: 'ladder', playlists: [{ fileName: 'abr', renditions: [{ name: 'high' }, { name: 'low' }] }] },
      ],
    },
    transcodeWebhook: { enable: true },
  });
  const [, json = ''] = /outputProfiles -d '(\[\{\n[^']*)'/.exec(await docsBlock('transcode.md', '"360p"')) ?? [];
  const reading = readConfig(OutputProfile, (JSON.parse(json) as unknown[])[0]);
  t.true(reading.ok);
  t.deepEqual(reading.warnings, []);
});

test('admission webhooks in the documentation are valid', async (t) => {
  const { config, warnings } = await load(
    t,
    serverXml({ vhosts: vhost(await docsBlock('access.md', '<AdmissionWebhooks>')) }),
    {
      KILN_ADMISSION_SECRET: 'secret',
    },
  );
  t.deepEqual(warnings, []);
  t.like(config.virtualHosts[0]?.admissionWebhooks, { secretKey: 'secret', timeout: 3000 });
});

for (const [format, file] of [
  [recordMap('/'), 'records.xml'],
  [PUSH_MAP, 'pushes.xml'],
] as const) {
  test(`the sample config/${file} is one that Server.xml names, is off, and is right when it is on`, async (t) => {
    const text = await readFile(join(CONFIG, file), 'utf8');
    const read = (given: string) => readMap(format as MapFormat<never>, given, file, {});
    t.deepEqual(read(text), { entries: [], findings: [] });
    const { entries, findings } = read(text.replaceAll('<Enable>false</Enable>', '<Enable>true</Enable>'));
    t.deepEqual(findings, []);
    t.is(entries.length, text.split('<Enable>').length - 1);
    t.true((await readFile(join(CONFIG, 'Server.xml'), 'utf8')).includes(`<Path>${file}</Path>`));
  });
}

test('stream maps in the documentation are valid', async (t) => {
  const { entries, findings } = readMap(PUSH_MAP, await docsBlock('push.md', '<PushInfo>'), 'push.md', {});
  t.deepEqual([entries.length, findings], [1, []]);
});

test('deliveries of recordings in the documentation are valid', async (t) => {
  const apps = application(`<Publishers>${await docsBlock('record.md', '<FILE>')}</Publishers>`);
  const env = { KILN_RECORD_SECRET: 'a', KILN_S3_KEY_ID: 'b', KILN_S3_KEY: 'c' };
  const { config, warnings } = await load(t, serverXml({ apps }), env);
  t.deepEqual(warnings, []);
  t.like(config.virtualHosts[0]?.applications[0]?.publishers.file?.record, {
    webhook: { secretKey: 'a' },
    upload: { accessKeyId: 'b', secretAccessKey: 'c', prefix: 'live/${Application}/' },
  });
});

test('overlays in the documentation are valid', async (t) => {
  const mapper = new XmlToJson();
  const reading = readConfig(
    OverlayMap,
    mapper.map(OverlayMap, parseXml(await docsBlock('transcode.md', '<OverlayMap>'), 'transcode.md'), 'OverlayMap'),
  );
  t.true(reading.ok);
  t.deepEqual([...mapper.problems, ...mapper.warnings, ...reading.warnings], []);
  t.like(reading.ok && reading.config, {
    overlayInfo: [{ overlay: [{ url: 'logo.png', width: '128', opacity: 80 }] }],
  });
});
