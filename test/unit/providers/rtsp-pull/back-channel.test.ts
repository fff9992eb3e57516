import test from 'ava';
import { pictures } from '../../../support/media/camera-media.ts';
import { CAMERA_SDP, FakeCamera } from '../../../support/rtsp/fake-camera.ts';
import { playRtsp } from '../../../support/rtsp/rtsp-player.ts';
import { until } from '../../../support/time/until.ts';

const VIDEO = 'a=control:trackID=0';
const AUDIO = 'a=control:trackID=1';

test('a back channel is not set up, from whichever side it is marked', async (t) => {
  for (const sdp of [
    CAMERA_SDP.replace(VIDEO, `a=sendonly\r\n${VIDEO}`).replace(AUDIO, `a=recvonly\r\n${AUDIO}`),
    CAMERA_SDP.replace(AUDIO, `a=sendonly\r\n${AUDIO}`),
  ]) {
    const camera = await FakeCamera.start(t, {
      sdp,
      answer: ({ uri }, { sockets }) => {
        if (!uri.endsWith('trackID=1')) return undefined;
        sockets.at(-1)?.destroy();
        return '';
      },
    });
    const played = await playRtsp(t, camera.url(), { ignoresReports: true });
    for (const packet of pictures(2)) camera.media(0, packet);
    await until('the pictures', () => played.of('video').length === 2);
    t.deepEqual(camera.methods(), ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY']);
    t.deepEqual(
      played.told[0]?.map(({ codec }) => codec),
      ['H264'],
    );
  }
});
