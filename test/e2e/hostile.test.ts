import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Siege, startBesieged } from '../soak/siege.ts';
import { encodeClip } from '../support/load/clip.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';

const SEED = 20_261;
const ATTACKS = 400;

test('the server serves on under hundreds of hostile clients, and lets go of them', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-hostile-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const clip = join(folder, 'clip.flv');
  await encodeClip(clip, { size: '320x180', kbit: 300 });
  const besieged = await startBesieged(folder);
  const { kiln } = besieged;
  t.teardown(() => kiln.stop());
  const publisher = new Program<PublishCommands>('publish.ts');
  t.teardown(() => publisher.stop());
  await publisher.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
  await kiln.liveStream('live');
  const siege = new Siege(besieged, SEED);
  await siege.check();
  await siege.attack(ATTACKS);
  const { errors } = await siege.check();
  t.deepEqual(errors, []);
});
