import test from 'ava';
import { CAMERA_SDP, FakeCamera } from '../../../support/rtsp/fake-camera.ts';
import { playRtsp } from '../../../support/rtsp/rtsp-player.ts';

const sdpWith = (range: string) => CAMERA_SDP.replace('a=control:*', `a=range:${range}\r\na=control:*`);

test('a server is asked for no range, or for the one that it has', async (t) => {
  for (const [range, expected] of [
    ['npt=0-30', undefined],
    ['npt=now-30', 'npt=now-'],
  ] as const) {
    const camera = await FakeCamera.start(t, { sdp: sdpWith(range) });
    await playRtsp(t, camera.url());
    t.is(camera.requests.at(-1)?.headers['range'], expected);
  }
});

test('a server that refuses to play from where it is is asked for the beginning', async (t) => {
  const camera = await FakeCamera.start(t, {
    sdp: sdpWith('npt=now-'),
    answer: ({ method, headers }) =>
      method === 'PLAY' && headers['range'] !== 'npt=0.000-' ? '457 Invalid Range\r\n\r\n' : undefined,
  });
  const played = await playRtsp(t, camera.url());
  t.deepEqual(
    camera.requests.filter(({ method }) => method === 'PLAY').map(({ headers }) => headers['range']),
    ['npt=now-', undefined, 'npt=0.000-'],
  );
  t.deepEqual(played.ends, []);
});
