import { mkdtempSync, readlinkSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, type ApiAnswer } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { until } from '../support/time/until.ts';

const APPLICATION = {
  name: 'app',
  type: 'live',
  providers: { rtmp: {} },
  publishers: { llhls: { segmentDuration: 2 }, webrtc: {} },
};
const VHOST = { name: 'made', host: { names: ['127.0.0.1'] }, applications: [APPLICATION] };
const APP = '/v1/vhosts/made/apps/app';

const start = (options = {}) => Kiln.start({ hostName: 'static.example.com', ...options });
const streamOf = (kiln: Kiln): Promise<ApiAnswer<StreamInfo>> => kiln.api(`${APP}/streams/live`);
const goesLive = (kiln: Kiln) =>
  until('the stream is live', async () => {
    const { status, body } = await streamOf(kiln);
    return status === 200 && body.response.outputs.length > 0;
  });

test('a virtual host made by the API takes publishers and viewers, and is there after the server was killed', async (t) => {
  const kiln = await start();
  t.teardown(() => kiln.stop());
  t.is((await kiln.api('/v1/vhosts', 'POST', [VHOST])).status, 200);
  for (let round = 0; round < 2; round++) {
    const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180' });
    t.teardown(() => publisher.stop());
    await goesLive(kiln);
    await until('it plays', async () => (await fetch(kiln.httpUrl('/app/live/llhls.m3u8'))).status === 200);
    await kiln.restart();
    await publisher.stop();
  }
  t.is((await kiln.api('/v1/vhosts/made', 'DELETE')).status, 200);
  t.is((await fetch(kiln.httpUrl('/app/live/llhls.m3u8'))).status, 404);
  await kiln.restart();
  t.is((await kiln.api('/v1/vhosts/made')).status, 404);
});

test('an absolute path of the storage is taken as it is', async (t) => {
  const storage = mkdtempSync(join(tmpdir(), 'kiln-storage-'));
  t.teardown(() => rmSync(storage, { recursive: true }));
  const kiln = await start({ storage });
  t.teardown(() => kiln.stop());
  t.is((await kiln.api('/v1/vhosts', 'POST', [VHOST])).status, 200);
  t.true(readdirSync(storage).includes('config.json'));
});

test('a change of the application disconnects its publisher, which may come back at once', async (t) => {
  const kiln = await start();
  t.teardown(() => kiln.stop());
  await kiln.api('/v1/vhosts', 'POST', [VHOST]);
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180' });
  t.teardown(() => publisher.stop());
  await goesLive(kiln);
  const changed = await kiln.api(APP, 'PATCH', { publishers: { llhls: { segmentCount: 4 } } });
  t.is(changed.status, 200);
  t.is((await streamOf(kiln)).status, 404);
  const second = publishPattern(kiln.rtmpUrl('live'), { size: '320x180' });
  t.teardown(() => second.stop());
  await publisher.exited();
  await goesLive(kiln);
});

long('200 restarts of an application leave nothing behind', async (t) => {
  const kiln = await start();
  t.teardown(() => kiln.stop());
  await kiln.api('/v1/vhosts', 'POST', [VHOST]);
  const restart = async (times: number) => {
    for (let i = 0; i < times; i++) {
      const { status } = await kiln.api(APP, 'PATCH', { publishers: { llhls: { segmentCount: 4 + (i % 3) } } });
      t.is(status, 200);
    }
  };
  const descriptors = () =>
    readdirSync(`/proc/${kiln.pid}/fd`).filter((fd) => {
      try {
        return !readlinkSync(`/proc/${kiln.pid}/fd/${fd}`).startsWith('socket:');
      } catch {
        return false;
      }
    }).length;
  await restart(10);
  const before = descriptors();
  await restart(200);
  await until('no file is open that was not before', () => descriptors() <= before);
  t.false(kiln.log.includes('MaxListenersExceededWarning'));
  const { body } = await kiln.api<{ connections: object; totalConnections: number }>('/v1/stats/current/vhosts/made');
  t.is(body.response.totalConnections, 0);
});

test('a publisher to an application that is made on demand', async (t) => {
  const kiln = await start();
  t.teardown(() => kiln.stop());
  await kiln.api('/v1/vhosts', 'POST', [{ ...VHOST, applications: [{ ...APPLICATION, name: '*' }] }]);
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180' });
  t.teardown(() => publisher.stop());
  await goesLive(kiln);
  t.like((await kiln.api<object>(APP)).body.response, { name: 'app', dynamic: true });
  await kiln.restart();
  t.is((await kiln.api(APP)).status, 404, 'it is not stored');
});
