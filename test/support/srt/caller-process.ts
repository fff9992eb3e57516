import koffi from 'koffi';
import { writeAddress } from '../../../src/protocols/srt/address.ts';
import { ERROR, INVALID, libsrt, MESSAGE_CONTROL, OPTION } from '../../../src/protocols/srt/library.ts';
import type { Ask, CallerRequest, CallerResponse, Connect } from './caller.ts';

/** A program of its own: `srt_connect` stands still until the listener, which may be in the test's process, has answered. */
const library = libsrt();
const native = koffi.load('libsrt-gnutls.so.1.5');
const connect = native.func('int srt_connect(int, const void *, int)');
const rejectReason = native.func('int srt_getrejectreason(int)');
const socketState = native.func('int srt_getsockstate(int)');
const PASSPHRASE = 26;
const RENDEZVOUS = 12;
const CONNECT_TIMEOUT = 36;
const PEER_IDLE_TIMEOUT = 55;
const SEND_DROP_DELAY = 32;
const CONNECTED = 5;

library.startup();
const sockets = new Map<number, number>();
/** Bytes of the longest message of each call. */
const longest = new Map<number, number>();

process.on('message', ({ id, ask }: CallerRequest) => {
  void answer(ask).then((result) => process.send?.({ id, result } satisfies CallerResponse));
});

async function answer(request: Ask): Promise<number> {
  switch (request.do) {
    case 'connect':
      return call(request);
    case 'send':
      return send(request.call, Buffer.from(request.data, 'base64'));
    case 'receive':
      return receive(request.call);
    case 'longest':
      return longest.get(request.call) ?? 0;
    case 'unsent':
      return unsent(request.call);
    case 'state':
      return socketState(sockets.get(request.call) ?? INVALID) === CONNECTED ? 1 : 0;
    case 'close':
      return new Promise((resolve) => library.close(sockets.get(request.call) ?? INVALID, () => resolve(0)));
  }
}

/** 0, or why it was refused. */
function call({ call: number, host, port, streamId = '', passphrase, rendezvous = false }: Connect): number {
  const socket = library.createSocket();
  sockets.set(number, socket);
  const set = (option: number, value: Buffer): void => {
    if (library.setOption(socket, option, value, value.length) === INVALID) throw new Error(library.lastErrorText());
  };
  if (streamId !== '') set(OPTION.streamid, Buffer.from(streamId));
  if (passphrase !== undefined) set(PASSPHRASE, Buffer.from(passphrase));
  // of a rendezvous, which nobody answers, it is taken ten times
  set(CONNECT_TIMEOUT, number32(rendezvous ? 100 : 20_000));
  // what it is told it is to hear, and not to guess; what it sends is sent, however busy the machine is
  set(PEER_IDLE_TIMEOUT, number32(60_000));
  set(SEND_DROP_DELAY, number32(-1));
  if (rendezvous) {
    set(RENDEZVOUS, Buffer.from([1, 0, 0, 0]));
    const own = writeAddress(host, 0);
    library.bind(socket, own, own.length);
  }
  const address = writeAddress(host, port);
  if (connect(socket, address, address.length) === INVALID) return rejectReason(socket) || INVALID;
  // of one that is thrown out already nothing can be set
  library.setOption(socket, OPTION.rcvsyn, Buffer.alloc(4), 4);
  return 0;
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

/** How many messages of 1316 bytes went. */
function send(number: number, data: Buffer): number {
  let messages = 0;
  for (let at = 0; at < data.length; at += 1316) {
    const message = data.subarray(at, at + 1316);
    if (library.send(sockets.get(number) ?? INVALID, message, message.length, -1, 1) === INVALID) return messages;
    messages++;
  }
  return messages;
}

function unsent(number: number): number {
  const blocks = new Int32Array(1);
  library.sendBuffer(sockets.get(number) ?? INVALID, blocks, new Int32Array(1));
  return blocks[0] ?? 0;
}

/** How many bytes came; INVALID when the connection is gone. */
function receive(number: number): number {
  const message = Buffer.alloc(1500);
  const control = Buffer.alloc(MESSAGE_CONTROL.bytes);
  let bytes = 0;
  for (;;) {
    const length = library.receive(sockets.get(number) ?? INVALID, message, message.length, control);
    if (length <= 0) return bytes > 0 || library.lastError() === ERROR.asyncReceive ? bytes : INVALID;
    bytes += length;
    longest.set(number, Math.max(length, longest.get(number) ?? 0));
  }
}
