import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { WORKER_PROGRAM } from '../../src/webrtc/worker-program.ts';
import { writeScript } from '../support/programs/script.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';
import { H264_VIDEO, offerOf } from '../support/webrtc/offers.ts';

const OFFER = offerOf([{ ...H264_VIDEO, direction: 'sendonly' }]);

test('media workers start with the first peer; where they cannot, peers are told to come later until they can', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-workers-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const fault = join(folder, 'fault');
  const program = writeScript(
    join(folder, 'worker'),
    `[ -z "$MEDIASOUP_VERSION" ] || [ ! -e ${fault} ] || exit 1\nexec ${WORKER_PROGRAM} "$@"`,
  );
  const kiln = await Kiln.start({ whip: true, env: { MEDIASOUP_WORKER_BIN: program } });
  t.teardown(() => kiln.stop());
  t.notRegex(kiln.log, /worker\.started/);

  let published = 0;
  const post = () =>
    fetch(kiln.httpUrl(`/app/stream${++published}?direction=whip`), {
      method: 'POST',
      headers: { 'content-type': 'application/sdp' },
      body: OFFER,
    });
  await writeFile(fault, '');
  const refused = await post();
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '1');
  await until('it is reported', () => kiln.log.includes('a media worker could not be started'));
  await rm(fault);
  await until('a worker runs', async () => (await post()).status === 201);
  await until('it is reported', () => kiln.log.includes('worker.started'));
});
