import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { diskCalls } from '../../../../../src/core/disk-calls.ts';
import { StreamFolder } from '../../../../../src/publishers/hls/rewind/stream-folder.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

test('a folder on a disk that hangs is not read in the turn of all media', async (t) => {
  virtualTime(t);
  const root = '/nowhere/dvr';
  const folder = new StreamFolder(root, { vhost: 'v', app: 'a', stream: 's', kind: 'llhls' });
  t.is(await folder.readState(), undefined);
  void diskCalls.of(root).take(() => new Promise<never>(() => undefined));
  await delay(10_000);
  await t.throwsAsync(folder.readState(), { message: 'the disk does not answer' });
});
