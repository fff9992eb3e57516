import { ChunkStream } from '../../../src/protocols/rtmp/chunk-writer.ts';
import { encodeUserControl, MessageType, UserControl } from '../../../src/protocols/rtmp/message.ts';
import { PictureClient } from './picture-client.ts';
import { RtmpClient } from './rtmp-client.ts';

const PING_EVERY_MS = 40;

/** Publishes a small picture from another host, and asks for answers all the while: `<address> <port> <stream> [pings]`. */
const [address = '', port = '', stream = '', pings] = process.argv.slice(2);
const client = await RtmpClient.publish(stream, { address, port: Number(port) });
PictureClient.of(client);
if (pings !== undefined) {
  const ping = encodeUserControl(UserControl.PingRequest, 0);
  setInterval(() => client.message(ChunkStream.Control, MessageType.UserControl, 0, ping), PING_EVERY_MS);
}
