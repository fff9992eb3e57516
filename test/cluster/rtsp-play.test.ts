import test from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { RawPlayer } from '../support/rtsp/raw-player.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { until } from '../support/time/until.ts';

const shared = sharedNodes(['a', 'b'], { rtsp: '' });

test('a node plays the stream of another one over RTSP, whose API lists and kicks the player', async (t) => {
  const [owner, other] = shared();
  const program = publishPattern(owner.rtmpUrl('talk'), { size: '160x90', rate: 15, bitrate: '100k' });
  t.teardown(() => program.stop());
  await owner.liveStream('talk');
  const player = await RawPlayer.open(t, other.ports.rtspPlay as number, '/app/talk?session=away');
  t.is((await player.prepare()).length, 2);
  t.is((await player.ask('PLAY')).status, 200);
  await until('media comes', () => player.of(0).length > 5 && player.of(2).length > 5);
  const sessions = '/v1/vhosts/default/apps/app/streams/talk/sessions';
  await until('the owner lists it', async () => {
    const { body } = await owner.api<readonly string[]>(sessions);
    return body.response.includes('away');
  });
  t.is((await owner.api(`${sessions}/away`, 'DELETE')).status, 200);
  await until('it is disconnected', () => player.closed);
});
