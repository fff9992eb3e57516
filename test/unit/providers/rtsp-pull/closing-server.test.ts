import test from 'ava';
import { FakeCamera, type CameraRequest } from '../../../support/rtsp/fake-camera.ts';
import { playRtsp } from '../../../support/rtsp/rtsp-player.ts';

const CHALLENGES = {
  Basic: 'Basic realm="cam"',
  Digest: 'Digest realm="cam", nonce="n1"',
} as const;

/** A camera that asks for credentials from a method on, and ends the connection on which it did. */
async function closing(
  t: Parameters<typeof FakeCamera.start>[0],
  from: string,
  how: 'end' | 'reset',
  challenge: string,
) {
  const order = ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY'];
  const isRight = ({ headers }: CameraRequest): boolean => {
    const given = headers['authorization'] ?? '';
    return given === `Basic ${Buffer.from('user:pass').toString('base64')}` || given.includes('username="user"');
  };
  return await FakeCamera.start(t, {
    answer: (request, { sockets }) => {
      if (order.indexOf(request.method) < order.indexOf(from) || isRight(request)) return undefined;
      const socket = sockets[request.connection];
      setImmediate(() => (how === 'end' ? socket?.end() : socket?.resetAndDestroy()));
      return `401 Unauthorized\r\nConnection: close\r\nWWW-Authenticate: ${challenge}\r\n\r\n`;
    },
  });
}

test('a server that ends the connection on which it asks for credentials gets them on another', async (t) => {
  for (const challenge of Object.values(CHALLENGES))
    for (const how of ['end', 'reset'] as const)
      for (const from of ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY']) {
        const camera = await closing(t, from, how, challenge);
        const played = await playRtsp(t, camera.url('live', 'user:pass@'));
        t.is(camera.sockets.length, 2, `${from} ${how}`);
        t.deepEqual(played.ends, []);
        t.is(camera.requests.at(-1)?.method, 'PLAY');
      }
});

test('a server that goes on asking for credentials, and hanging up, gets no third connection', async (t) => {
  const camera = await closing(t, 'DESCRIBE', 'end', CHALLENGES.Digest);
  await t.throwsAsync(playRtsp(t, camera.url('live', 'other:pass@')), {
    message: 'the server does not accept the credentials of the URL (401)',
  });
  t.true(camera.sockets.length <= 2);
  const nameless = await closing(t, 'OPTIONS', 'reset', CHALLENGES.Digest);
  await t.throwsAsync(playRtsp(t, nameless.url('live')), {
    message: 'the server asks for credentials, and the URL has none (401)',
  });
  t.is(nameless.sockets.length, 1);
});
