import { createHmac } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { WebrtcBindConfig } from '../../../src/config/model.ts';
import { iceServersFor, linkHeaders, offerFields, type IceServer } from '../../../src/webrtc/ice-servers.ts';
import { load, serverXml } from '../config/support.ts';

async function bindOf(t: ExecutionContext, inner: string): Promise<WebrtcBindConfig> {
  const bind = `<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling>${inner}</WebRTC></Publishers>`;
  return (await load(t, serverXml({ bind }))).config.bind.publishers.webrtc as WebrtcBindConfig;
}

const ask = (bind: WebrtcBindConfig, query = '', hostName = 'kiln.example') =>
  iceServersFor(bind, { hostName, query: new URLSearchParams(query) });

/** Seconds until the credentials of a server expire, which are those of a secret. */
function lifetime(t: ExecutionContext, { userName = '', credential }: IceServer, secret: string): number {
  t.is(credential, createHmac('sha1', secret).update(userName).digest('base64'));
  t.regex(userName, /^\d{10}:[0-9a-f]{16}$/);
  return parseInt(userName, 10) - Date.now() / 1000;
}

test('credentials are made for each client, and hold as long as is configured', async (t) => {
  const bind = await bindOf(
    t,
    '<IceServers><IceServer><Urls><Url>turn:turn.example:3478?transport=tcp</Url></Urls>' +
      '<Secret>shared</Secret><Lifetime>600000</Lifetime></IceServer>' +
      '<IceServer><Urls><Url>stun:stun.example</Url></Urls></IceServer>' +
      '<IceServer><Urls><Url>turn:other.example</Url></Urls><UserName>u</UserName><Credential>p</Credential></IceServer></IceServers>',
  );
  const [made, stun, fixed] = ask(bind) as [IceServer, IceServer, IceServer];
  const left = lifetime(t, made, 'shared');
  t.true(left > 590 && left <= 601, `${left}`);
  t.deepEqual(made.urls, ['turn:turn.example:3478?transport=tcp']);
  t.like(stun, { urls: ['stun:stun.example'], userName: undefined, credential: undefined });
  t.like(fixed, { urls: ['turn:other.example'], userName: 'u', credential: 'p' });
  t.not(ask(bind)[0]?.userName, made.userName);
  t.notRegex(JSON.stringify(offerFields(ask(bind))), /shared/);
});

const RELAY =
  '<IceCandidates><TcpRelay>*:3478</TcpRelay><TcpRelay>198.51.100.1:3479</TcpRelay><TcpRelay>[2001:db8::1]:3478</TcpRelay>';

test('the TURN relay is given to clients that ask for it', async (t) => {
  const bind = await bindOf(t, `${RELAY}<TcpRelaySecret>s</TcpRelaySecret></IceCandidates>`);
  for (const query of ['', 'transport=udp', 'transport=tcp', 'transport=udptcp', 'transport=x'])
    t.deepEqual(ask(bind, query), []);
  for (const query of ['transport=relay', 'transport=ALL']) {
    const [relay] = ask(bind, query) as [IceServer];
    t.deepEqual(relay.urls, [
      'turn:kiln.example:3478?transport=tcp',
      'turn:198.51.100.1:3479?transport=tcp',
      'turn:[2001:db8::1]:3478?transport=tcp',
    ]);
    t.true(lifetime(t, relay, 's') > 3600);
  }
  t.is(ask(bind, 'transport=relay', '::1')[0]?.urls[0], 'turn:[::1]:3478?transport=tcp');
});

test('the relay is for all where it is forced or the default, and for none without a secret', async (t) => {
  const secret = '<TcpRelaySecret>s</TcpRelaySecret>';
  t.is(
    ask(await bindOf(t, `${RELAY}${secret}<TcpRelayForce>true</TcpRelayForce></IceCandidates>`), 'transport=udp')
      .length,
    1,
  );
  for (const transport of ['relay', 'all']) {
    const bind = await bindOf(t, `${RELAY}${secret}<DefaultTransport>${transport}</DefaultTransport></IceCandidates>`);
    t.is(ask(bind).length, 1);
    t.is(ask(bind, 'transport=udp').length, 0);
  }
  for (const without of ['', '<TcpRelaySecret></TcpRelaySecret>']) {
    t.deepEqual(ask(await bindOf(t, `${RELAY}${without}<TcpRelayForce>true</TcpRelayForce></IceCandidates>`)), []);
  }
});

test('fields of offers and headers of answers', (t) => {
  const servers = [{ urls: ['stun:a'] }, { urls: ['turn:b', 'turn:c'], userName: 'na"me', credential: 'p' }];
  t.deepEqual(offerFields([]), {});
  t.deepEqual(JSON.parse(JSON.stringify(offerFields(servers))), {
    iceServers: [{ urls: ['stun:a'] }, { urls: ['turn:b', 'turn:c'], username: 'na"me', credential: 'p' }],
    ice_servers: [{ urls: ['stun:a'] }, { urls: ['turn:b', 'turn:c'], user_name: 'na"me', credential: 'p' }],
  });
  const secret = '; username="na\\"me"; credential="p"; credential-type="password"';
  t.deepEqual(linkHeaders(servers), [
    '<stun:a>; rel="ice-server"',
    `<turn:b>; rel="ice-server"${secret}`,
    `<turn:c>; rel="ice-server"${secret}`,
  ]);
});
