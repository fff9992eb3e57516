import test, { type ExecutionContext } from 'ava';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import { Registry } from '../../../src/core/registry.ts';
import { playRequest } from '../../support/access/access.ts';
import { aloneWith } from '../../support/cluster/alone.ts';
import { addVhost, goLive } from '../../support/server/live.ts';

const UNLIMITED = { maxConnection: 0, clusterMaxConnection: 0 };
const NOBODY = {
  file: 0,
  flv: 0,
  hlsv3: 0,
  llhls: 0,
  ovt: 0,
  playback: 0,
  push: 0,
  rtmp: 0,
  rtsp: 0,
  srt: 0,
  thumbnail: 0,
  webrtc: 0,
};

/** A live `app/stream`, viewers that come and stay, and what the other nodes count. */
async function open(t: ExecutionContext, publishers: object) {
  const registry = new Registry();
  addVhost(registry, { publishers: publishers as ApplicationConfig['publishers'] });
  const elsewhere = { count: { ...NOBODY } as typeof NOBODY | undefined, asked: 0 };
  const countElsewhere = async () => {
    elsewhere.asked++;
    return elsewhere.count;
  };
  const { access, cluster } = await aloneWith(registry, { guards: [], countElsewhere });
  t.teardown(async () => {
    access.close();
    registry.close('the test is over');
    await cluster.close();
  });
  const output = goLive(registry, 'app', 'stream');
  let viewers = 0;
  const watch = async (protocol: 'webrtc' | 'srt' = 'webrtc') => {
    await access.admitSession(playRequest({ protocol }), (found) => found);
    return output.addSession({ id: String(viewers++), kind: protocol } as never);
  };
  return { watch, elsewhere };
}

test('MaxConnection of all publishers together counts the viewers of each', async (t) => {
  const { watch, elsewhere } = await open(t, { ...UNLIMITED, maxConnection: 2, webrtc: UNLIMITED, srt: UNLIMITED });
  await watch('srt');
  const leave = await watch();
  await t.throwsAsync(watch(), { code: 'tooManyConnections', message: /at most 2/ });
  await t.throwsAsync(watch('srt'), { code: 'tooManyConnections' });
  leave();
  await t.notThrowsAsync(watch());
  t.is(elsewhere.asked, 0, 'nobody is asked without a limit for the cluster');
});

test('ClusterMaxConnection of a publisher counts its viewers on all nodes, and no others', async (t) => {
  const { watch, elsewhere } = await open(t, { webrtc: { clusterMaxConnection: 3 }, srt: {} });
  elsewhere.count = { ...NOBODY, webrtc: 2, srt: 50 };
  await watch();
  await t.throwsAsync(watch(), { code: 'tooManyConnections', message: /at most 3/ });
  await t.notThrowsAsync(watch('srt'));
  elsewhere.count = { ...NOBODY, webrtc: 1 };
  await t.notThrowsAsync(watch());
});

test('ClusterMaxConnection of all publishers together; what is pushed or recorded is no viewer', async (t) => {
  const { watch, elsewhere } = await open(t, { clusterMaxConnection: 3, webrtc: {}, srt: {} });
  elsewhere.count = { ...NOBODY, llhls: 1, push: 9, file: 9 };
  await watch();
  await watch('srt');
  await t.throwsAsync(watch(), { code: 'tooManyConnections' });
});

test('a node counts connections alone while the other nodes cannot be counted', async (t) => {
  const { watch, elsewhere } = await open(t, { webrtc: { clusterMaxConnection: 1 } });
  elsewhere.count = undefined;
  await t.notThrowsAsync(watch());
  await t.throwsAsync(watch(), { code: 'tooManyConnections' });
});
