import test, { type ExecutionContext } from 'ava';
import { configHashes, isSameConfig } from '../../../src/config/config-hash.ts';
import { application, load, serverXml } from './support.ts';

const MANAGERS =
  '<Managers><Host><Names><Name>*</Name></Names></Host><API><AccessToken>t</AccessToken></API></Managers>';
const NODE = '<Node><Id>a</Id><AdvertiseAddress>127.0.0.1</AdvertiseAddress><Port>7946</Port></Node>';

async function hashesOf(t: ExecutionContext, secrets: string, apps = application()) {
  const cluster = `<Cluster><Redis><Url>redis://127.0.0.1</Url></Redis>${secrets}${NODE}</Cluster>`;
  return configHashes((await load(t, serverXml({ server: MANAGERS + cluster, apps }))).config);
}

test('nodes with the same Server.xml know it while the secret is being changed', async (t) => {
  const [before, between, after] = [
    await hashesOf(t, '<Secret>former</Secret>'),
    await hashesOf(t, '<Secret>present</Secret><PreviousSecret>former</PreviousSecret>'),
    await hashesOf(t, '<Secret>present</Secret>'),
  ];
  for (const [one, other] of [
    [before, between],
    [between, after],
  ] as const) {
    t.true(isSameConfig(one, other));
    t.true(isSameConfig(other, one));
  }
  t.notRegex(JSON.stringify(between), /former"|present/);
});

test('the hash of another Server.xml differs, whichever secrets there are', async (t) => {
  const own = await hashesOf(t, '<Secret>present</Secret><PreviousSecret>former</PreviousSecret>');
  const apps = application('', 'other');
  for (const secrets of [
    '<Secret>former</Secret>',
    '<Secret>present</Secret><PreviousSecret>former</PreviousSecret>',
    '<Secret>present</Secret>',
  ])
    t.false(isSameConfig(own, await hashesOf(t, secrets, apps)));
});

test('a node that is alone publishes no hash of its configuration', async (t) => {
  t.deepEqual(configHashes((await load(t, serverXml())).config), {});
  t.true(isSameConfig({}, {}));
  t.false(isSameConfig({}, { configHash: 'x' }));
});
