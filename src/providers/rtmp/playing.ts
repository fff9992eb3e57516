import type { Socket } from 'node:net';
import type { PlayRequest } from '../../access/request.ts';
import type { Logger } from '../../log/log.ts';
import { statusInfo, type Command } from '../../protocols/rtmp/command.ts';
import { onMessageStream, type Play, type PlayLink } from '../../protocols/rtmp/play.ts';
import type { ServerConnection } from '../../protocols/rtmp/server-connection.ts';
import { text, type RtmpClient } from './request.ts';

/** Bytes that may wait in a player's socket; beyond that the play pauses until all are sent. */
const MAX_UNSENT_BYTES = 256 * 1024;

/** Serves clients that ask to play. */
export interface RtmpPlayers {
  /** @returns the play, which waits for admission at first */
  open(request: PlayRequest, link: PlayLink): Play;
}

export interface PlayingOptions {
  readonly client: RtmpClient;
  /** Message stream. */
  readonly streamId: number;
  readonly request: PlayRequest;
  readonly players: RtmpPlayers;
  readonly socket: Socket;
  readonly wire: ServerConnection;
  /** Names the stream. */
  readonly log: Logger;
  /** The client is served. */
  readonly onServed: () => void;
  /** The play has ended by itself. @param level of the reason in the log */
  readonly onEnded: PlayLink['ended'];
}

/** Phase of an RTMP session: its client plays a stream, or waits for admission to it. */
export class Playing {
  readonly name = 'playing';
  readonly client: RtmpClient;
  readonly streamId: number;
  readonly #play: Play;

  constructor(options: PlayingOptions) {
    this.client = options.client;
    this.streamId = options.streamId;
    this.#play = options.players.open(options.request, linkOf(options));
  }

  /** Carries out a command about the stream that is played (RTMP 1.0, section 7.2.2). */
  command({ name, args: [argument] }: Command): void {
    if (name === 'pause' || name === 'pauseRaw') this.#play.pause(argument !== false);
    if (name === 'receiveAudio') this.#play.receive('audio', argument !== false);
    if (name === 'receiveVideo') this.#play.receive('video', argument !== false);
  }

  /** All that was sent is out. */
  writable(): void {
    this.#play.writable();
  }

  /** The client has left. Idempotent. */
  end(reason: string): void {
    this.#play.close(reason);
  }
}

function linkOf({ client, streamId, socket, wire, log, onServed, onEnded }: PlayingOptions): PlayLink {
  return {
    log,
    ability: client.ability,
    get unsent() {
      return socket.writableLength;
    },
    get isFull() {
      return socket.writableLength > MAX_UNSENT_BYTES;
    },
    status: (info) => wire.status(streamId, info),
    streamBegin: () => wire.streamBegin(streamId),
    streamEof: () => wire.streamEof(streamId),
    send: (message) => {
      for (const piece of onMessageStream(message, streamId)) socket.write(piece);
    },
    playing: onServed,
    ended: onEnded,
  };
}

/** Answers the commands of players that say nothing about what they play, on any connection. */
export const playerAnswers = {
  seek(wire: ServerConnection, _command: Command, streamId: number): void {
    wire.status(streamId, statusInfo('error', 'NetStream.Seek.Failed', 'A live stream has no other position'));
  },
  FCSubscribe(wire: ServerConnection, { args }: Command): void {
    wire.call('onFCSubscribe', 0, null, statusInfo('status', 'NetStream.Play.Start', text(args[0])));
  },
  FCUnsubscribe(wire: ServerConnection, { args }: Command): void {
    wire.call('onFCUnsubscribe', 0, null, statusInfo('status', 'NetStream.Play.Stop', text(args[0])));
  },
};
