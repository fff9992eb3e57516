import { element } from '../common.js';
import { appPath } from './api.js';
import { changeButton } from './parts.js';

/** @import { Api, StreamName } from './api.js' */

/** Protocols of the API by the scheme of an address. */
const PROTOCOLS = new Map([
  ['rtmp:', 'rtmp'],
  ['rtmps:', 'rtmp'],
  ['srt:', 'srt'],
  ['rtsp:', 'rtsp'],
  ['whip:', 'whip'],
  ['whips:', 'whip'],
  ['udp:', 'mpegts'],
  ['tcp:', 'mpegts'],
]);

/**
 * @param {string} url
 * @throws {Error} for an address that nothing can be pushed to
 */
function protocolOf(url) {
  const protocol = URL.canParse(url) ? PROTOCOLS.get(new URL(url).protocol) : undefined;
  if (protocol === undefined)
    throw new Error(`Enter an address that begins with ${[...PROTOCOLS.keys()].join('//, ')}//`);
  return protocol;
}

/**
 * A form that starts a push of a stream.
 * @param {Api} api
 * @param {StreamName} stream
 * @param {() => { name: string }} target the output stream to push
 */
export function pushForm(api, { vhost, app, stream }, target) {
  const url = element('input', {
    id: 'push-url',
    placeholder: 'rtmp://host/app',
    autocomplete: 'off',
    inputMode: 'url',
  });
  const key = element('input', {
    id: 'push-key',
    type: 'password',
    placeholder: 'stream key',
    autocomplete: 'off',
  });
  const start = async () => {
    const address = url.value.trim();
    await api.call('POST', `${appPath({ vhost, app })}:startPush`, {
      id: `${stream}-${Date.now()}`,
      stream: target(),
      protocol: protocolOf(address),
      url: address,
      ...(key.value !== '' && { streamKey: key.value }),
    });
    key.value = '';
  };
  /**
   * @param {string} text
   * @param {HTMLElement} field
   */
  const label = (text, field) => element('label', { htmlFor: field.id, className: 'unseen' }, text);
  const button = changeButton(api, 'Start push', start, { done: 'The push starts' });
  return element('div', { className: 'inline' }, label('URL', url), url, label('Stream key', key), key, button);
}
