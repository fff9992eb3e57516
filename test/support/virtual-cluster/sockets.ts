import { EventEmitter } from 'node:events';
import type { Socket } from './net.ts';
import { here } from './scheduler.ts';
import { World } from './world.ts';

/** Stands in for the `connect` of `node:net` where it is only asked whether somebody accepts. */
export function connect({ host }: { readonly host: string }): EventEmitter & { destroy(error?: Error): void } {
  const events = new EventEmitter();
  const process = here();
  const close = (error?: Error): void => {
    if (error !== undefined) events.emit('error', error);
    events.emit('close');
  };
  const socket: Socket = World.here.net.connect(process, host, {
    onOpen: () => events.emit('connect'),
    onClose: (reason) => close(new Error(reason)),
  });
  const destroy = (error?: Error): void => {
    socket.end(process);
    setImmediate(close, error);
  };
  return Object.assign(events, { destroy });
}
