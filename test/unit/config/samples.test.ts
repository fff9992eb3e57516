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
