import test from 'ava';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { Guard } from '../../../src/access/guard.ts';
import type { WebhookSession } from '../../../src/access/webhook-session.ts';
import { VIDEO } from '../../support/server/live.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO } from '../../support/webrtc/offers.ts';
import { SignallingClient } from '../../support/webrtc/signalling-client.ts';
import { until } from '../../support/time/until.ts';
import { startWebrtc } from '../../support/webrtc/webrtc-server.ts';
import { NO_WEBHOOK_SESSIONS } from '../../support/access/access.ts';

const SDP = { 'content-type': 'application/sdp' };
const SENDING = { ...H264_VIDEO, direction: 'sendonly' };

/** Lets everybody in until `until`, and notes whose session has ended, and why. */
function limited(ends: string[], until: () => number): Pick<AccessOptions, 'guards' | 'webhookSessions'> {
  const guard: Guard = ({ direction, query }) => {
    const session = { id: `${direction} ${query.get('who')}`, vhost: 'default' };
    return async () => ({ until: until(), session });
  };
  const close = ({ id }: WebhookSession, reason: string) => void ends.push(`${id}: ${reason}`);
  return { guards: [guard], webhookSessions: { ...NO_WEBHOOK_SESSIONS, close } };
}

test('sessions over WebRTC end when their time is over, and the guard hears of it once', async (t) => {
  const ends: string[] = [];
  // long enough for an offer to be made on a busy machine
  let lifetime = 6000;
  const server = await startWebrtc(t, { access: limited(ends, () => Date.now() + lifetime) });
  const application = server.registry.vhost('default').application('app');
  const input = application.publish('stream', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'stream');
  output.setTracks([VIDEO]);
  application.announce(output);
  const post = async (path: string, body: string) =>
    (await fetch(server.url + path, { method: 'POST', headers: SDP, body })).status;
  const viewer = '/app/stream?direction=whep';

  t.is(await post(`${viewer}&who=wrong`, offerOf([OPUS_AUDIO])), 406);
  t.is(ends.length, 1, 'who is refused after all has ended');
  t.regex(ends[0] ?? '', /^outgoing wrong: /);

  t.is(await post(`${viewer}&who=hasty`, offerOf([H264_VIDEO])), 201);
  const signalling = await SignallingClient.open(`${server.url.replace('http', 'ws')}/app/stream?who=socket`);
  t.teardown(() => signalling.socket.terminate());
  signalling.send({ command: 'request_offer' });
  t.is((await signalling.command('offer')).code, 200);
  t.is(await post('/app/mine?direction=whip&who=publisher', offerOf([SENDING])), 201);

  await until('the time of all is over', () => ends.length === 4);
  t.deepEqual(ends.slice(1).toSorted(), [
    'incoming publisher: its allowed time is over',
    'outgoing hasty: its allowed time is over',
    'outgoing socket: its allowed time is over',
  ]);
  t.is(output.sessions.size, 0);
  await signalling.end();

  lifetime = 3_600_000;
  t.is(await post(`${viewer}&who=patient`, offerOf([H264_VIDEO])), 201);
  input.close('the publisher left');
  t.deepEqual(ends.slice(4), ['outgoing patient: the publisher left']);
});
