import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import test from 'ava';
import koffi from 'koffi';
import { limitUnacknowledged } from '../../../src/protocols/unacknowledged.ts';

const TCP = 6;
const TCP_USER_TIMEOUT = 18;

/** What the system has for a connection, in milliseconds. */
function userTimeout(socket: Socket): number {
  const getOption = koffi.load(null).func('getsockopt', 'int', ['int', 'int', 'int', 'void *', 'void *']);
  const { fd } = (socket as unknown as { _handle: { fd: number } })._handle;
  const value = Buffer.alloc(4);
  const length = Buffer.from(Uint32Array.of(value.length).buffer);
  if (getOption(fd, TCP, TCP_USER_TIMEOUT, value, length) !== 0) throw new Error('getsockopt failed');
  return value.readInt32LE();
}

(process.platform === 'linux' ? test : test.skip)(
  'the system ends a connection whose peer acknowledges nothing',
  async (t) => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [socket] = (await once(server, 'connection')) as [Socket];
    t.is(userTimeout(socket), 0, 'for a quarter of an hour');
    await limitUnacknowledged(socket, 30_000);
    t.is(userTimeout(socket), 30_000);
    client.destroy();
    socket.destroy();
    await once(socket, 'close');
    await t.notThrowsAsync(limitUnacknowledged(socket, 30_000), 'it has ended');
  },
);
