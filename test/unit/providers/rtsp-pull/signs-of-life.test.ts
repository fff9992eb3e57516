import test from 'ava';
import { FakeCamera, type CameraRequest } from '../../../support/rtsp/fake-camera.ts';
import { playRtsp } from '../../../support/rtsp/rtsp-player.ts';
import { until } from '../../../support/time/until.ts';

/** Signs come three times in this. */
const TIMEOUT_SECONDS = 2;
/** So many are sent in more than the time for which any answer is waited for. */
const SIGNS = 8;
/** Two that do not count leave a server without one for as long as it waits. */
const MAX_IN_VAIN = 1;

/** What a server does with GET_PARAMETER, none of which keeps its session. */
const WAYS: Readonly<Record<string, (request: CameraRequest) => string>> = {
  'is refused': () => '405 Method Not Allowed\r\n\r\n',
  'is refused with the number of another request': ({ headers }) =>
    `RTSP/1.0 405 Method Not Allowed\r\nCSeq: ${Number(headers['cseq']) - 1}\r\n\r\n`,
  'is refused with the number 0': () => 'RTSP/1.0 501 Not Implemented\r\nCSeq: 0\r\n\r\n',
  'is not answered': () => '',
};

for (const [how, answer] of Object.entries(WAYS)) {
  test(`a session goes on by OPTIONS where GET_PARAMETER ${how}`, async (t) => {
    let inVain = 0;
    const camera = await FakeCamera.start(t, {
      answer: (request, { sockets }) => {
        const { method, headers } = request;
        inVain = method === 'GET_PARAMETER' ? inVain + 1 : 0;
        if (inVain > MAX_IN_VAIN) sockets[0]?.destroy();
        if (method === 'GET_PARAMETER') return answer(request);
        if (method !== 'SETUP') return undefined;
        return `200 OK\r\nSession: 7;timeout=${TIMEOUT_SECONDS}\r\nTransport: ${headers['transport']}\r\n\r\n`;
      },
    });
    const played = await playRtsp(t, camera.url());
    const begun = camera.requests.length;
    await until('signs of life', () => played.ends.length > 0 || camera.requests.length >= begun + SIGNS);
    t.deepEqual(played.ends, []);
  });
}
