import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { loadConfig } from '../../../src/config/load.ts';

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
  const [application] = vhost?.applications ?? [];
  t.is(application?.name, 'app');
  t.deepEqual(Object.keys(application?.providers ?? {}), ['rtmp']);
  t.true(application?.providers.rtmp?.blockDuplicateStreamName);
  t.like(application?.publishers.llhls, {
    chunkDuration: 0.5, segmentDuration: 2, segmentCount: 10, partHoldBack: 1.5, crossDomains: { url: ['*'] },
  });
  t.not(application?.publishers.webrtc, undefined);
  t.deepEqual(application?.outputProfiles.outputProfile.map(({ name }) => name), ['default']);
});

test('without a token in the environment one is made up, a new one each time', async (t) => {
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

test('what the default configuration has in comments is right, too', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-sample-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const text = uncommented(await readFile(join(CONFIG, 'Server.xml'), 'utf8'));
  const vhost = text.slice(text.indexOf('<VirtualHosts>')).replace(/<TLS>[\s\S]*?<\/TLS>/, '').replace(/<VirtualHost include[^>]*>/, '');
  const file = join(folder, 'Server.xml');
  const head = '<Server version="8"><Type>origin</Type><IP>*</IP><Bind><Providers><RTMP><Port>1935</Port></RTMP></Providers></Bind>';
  await writeFile(file, head + vhost);
  const { config, warnings } = await loadConfig(file, { env: { KILN_TRANSCODE_SECRET: 'secret' } });
  t.deepEqual(warnings, []);
  const [application] = config.virtualHosts[0]?.applications ?? [];
  t.like(application, {
    transcodeWebhook: { enable: true, secretKey: 'secret' },
    outputProfiles: { outputProfile: [{ name: 'two', playlists: [{ fileName: 'abr' }] }] },
  });
});

test('the transcoding configuration', async (t) => {
  const { config, warnings } = await loadConfig(join(CONFIG, 'transcode.xml'), { env: {} });
  t.deepEqual(warnings, []);
  t.is(config.bind.publishers.thumbnail?.port, 3333);
  const [application] = config.virtualHosts[0]?.applications ?? [];
  t.not(application?.publishers.thumbnail, undefined);
  t.false(application?.outputProfiles.onDemand);
  const [profile] = application?.outputProfiles.outputProfile ?? [];
  const names = (encodes: readonly { name: string }[] = []) => encodes.map(({ name }) => name);
  t.deepEqual(names(profile?.encodes.videos), ['720p', '480p', '240p']);
  t.deepEqual(names(profile?.encodes.audios), ['aac', 'opus']);
  t.like(profile?.encodes.images[0], { codec: 'jpeg', height: 360, framerate: 1 });
  t.deepEqual(profile?.playlists.map(({ fileName, renditions, rendition_templates: { length } }) => [fileName, renditions.length, length]), [
    ['llhls', 3, 0], ['webrtc_default', 0, 1],
  ]);
  const encodes = new Set([...names(profile?.encodes.videos), ...names(profile?.encodes.audios)]);
  for (const { video = '', audio = '' } of profile?.playlists[0]?.renditions ?? []) t.true(encodes.has(video) && encodes.has(audio));
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
