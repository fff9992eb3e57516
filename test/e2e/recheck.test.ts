import test from 'ava';
import { admissionsXml, startAdmissions } from '../support/access/admissions.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };

test('a control server that is asked again ends what it allowed: viewers, and then their publisher', async (t) => {
  const refused = new Set<string>();
  const control = await startAdmissions(t, ({ url }) => ({
    allowed: ![...refused].some((who) => url.includes(`who=${who}`)),
    reason: 'not paid',
  }));
  const kiln = await Kiln.start({
    vhost: admissionsXml(control).replace('<Timeout>', '<RecheckInterval>1000</RecheckInterval><Timeout>'),
    whip: true,
  });
  t.teardown(() => kiln.stop());
  const encoder = new Program('ffmpeg', [
    ...patternArguments(PICTURE),
    '-f',
    'flv',
    `${kiln.rtmpUrl('live')}?who=encoder`,
  ]);
  t.teardown(() => encoder.stop());
  await kiln.liveStream('live');
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  await peer.play(kiln.httpUrl('/app/live?direction=whep&who=whep'));
  const master = kiln.httpUrl('/app/live/llhls.m3u8?who=hls');
  const list = await until('the playlist', async () => {
    const answer = await fetch(master);
    return answer.ok && (await answer.text());
  });
  const [chunklist = ''] = urisOf(list, master);
  const status = async (): Promise<number> => (await fetch(chunklist)).status;
  t.is(await status(), 200);
  await until('all were asked about again', async () => {
    await status();
    return ['encoder', 'whep', 'hls'].every((who) => control.count('opening', who) > 2);
  });
  t.is(await status(), 200);
  for (const who of ['encoder', 'whep', 'hls']) t.is(control.count('closing', who), 0, who);

  refused.add('hls').add('whep');
  await until('the player is refused', async () => (await status()) === 401);
  await until('both are closed', () => ['hls', 'whep'].every((who) => control.count('closing', who) > 0));
  await peer.until(() => peer.state !== 'connected');
  t.is((await kiln.stream('live')).status, 200);
  refused.add('encoder');
  t.not(await encoder.exited(), 0);
  await until('its stream has ended', async () => (await kiln.stream('live')).status === 404);
  await until('its end is told', () => control.count('closing', 'encoder') > 0);
  for (const who of ['encoder', 'hls', 'whep']) t.is(control.count('closing', who), 1, who);
  t.regex(kiln.log, /the control server does not allow it any more: not paid/);
});
