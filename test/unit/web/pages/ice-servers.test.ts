import test from 'ava';
import { linkHeaders, type IceServer } from '../../../../src/webrtc/ice-servers.ts';

interface Server {
  readonly urls: string;
  readonly username?: string;
  readonly credential?: string;
}
const { iceServersOf, useIceServers } = (await import(
  new URL('../../../../src/web/pages/ice-servers.js', import.meta.url).href
)) as {
  iceServersOf: (links: string) => Server[];
  useIceServers: (peer: object, headers: Headers) => void;
};

const SERVERS: readonly IceServer[] = [
  { urls: ['stun:stun.example.com'] },
  {
    urls: ['turn:192.0.2.1:3478?transport=tcp', 'turns:[2001:db8::1]:443'],
    userName: '1700000000:ab',
    credential: 'a"b\\c, <x>; rel="none"',
  },
];

test('a page reads what the server writes', (t) => {
  // a browser joins headers of one name
  t.deepEqual(iceServersOf(linkHeaders(SERVERS).join(', ')), [
    { urls: 'stun:stun.example.com' },
    ...['turn:192.0.2.1:3478?transport=tcp', 'turns:[2001:db8::1]:443'].map((urls) => ({
      urls,
      username: '1700000000:ab',
      credential: 'a"b\\c, <x>; rel="none"',
    })),
  ]);
});

test('other Link headers, and malformed ones, name no server', (t) => {
  t.deepEqual(iceServersOf('<style.css>; rel=preload; as=style, <stun:a>; REL=ice-server'), [{ urls: 'stun:a' }]);
  for (const links of ['', ',', '<', '<stun:a>', '<stun:a>; rel="ice-server', 'stun:a; rel="ice-server"'])
    t.deepEqual(iceServersOf(links), [], links);
});

test('a connection is configured with the servers that are named, and left alone without one', (t) => {
  const set: object[] = [];
  const peer = {
    getConfiguration: () => ({ bundlePolicy: 'balanced', iceServers: [] }),
    setConfiguration: (configuration: object) => set.push(configuration),
  };
  useIceServers(peer, new Headers());
  t.deepEqual(set, []);
  useIceServers(peer, new Headers({ link: '<stun:a>; rel="ice-server"' }));
  t.deepEqual(set, [{ bundlePolicy: 'balanced', iceServers: [{ urls: 'stun:a' }] }]);
});
