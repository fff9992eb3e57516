"""Seeks with GStreamer's playbin3, for tests, and prints the number of the frame that it shows after each, a line each.

argv[1]: JSON of {"uri", "seconds": [positions of the stream], "bits": blocks of a frame}.
"""
import json
import sys
import gi

gi.require_version('Gst', '1.0')
from gi.repository import Gst

options = json.loads(sys.argv[1])
Gst.init(None)
player = Gst.ElementFactory.make('playbin3')
sink = Gst.parse_bin_from_description('videoconvert ! video/x-raw,format=GRAY8 ! appsink name=frames', True)
frames = sink.get_by_name('frames')
player.set_property('uri', options['uri'])
player.set_property('video-sink', sink)
player.set_property('audio-sink', Gst.ElementFactory.make('fakesink'))
bus = player.get_bus()


def shown():
    """Waits until a frame is there, and reads its number."""
    types = Gst.MessageType.ASYNC_DONE | Gst.MessageType.ERROR | Gst.MessageType.EOS
    message = bus.timed_pop_filtered(20 * Gst.SECOND, types)
    if message is None or message.type != Gst.MessageType.ASYNC_DONE:
        sys.exit(f'no frame: {message and message.get_structure().to_string()}')
    sample = frames.emit('pull-preroll')
    caps = sample.get_caps().get_structure(0)
    width, height = caps.get_value('width'), caps.get_value('height')
    buffer = sample.get_buffer()
    data = buffer.extract_dup(0, buffer.get_size())
    row = data[len(data) // height * (height // 2):]
    block = width / options['bits']
    return sum(2**bit for bit in range(options['bits']) if row[int((bit + 0.5) * block)] > 128)


player.set_state(Gst.State.PAUSED)
shown()
for second in options['seconds']:
    flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE
    if not player.seek_simple(Gst.Format.TIME, flags, int(second * Gst.SECOND)):
        sys.exit(f'it does not seek to {second}')
    print(shown(), flush=True)
player.set_state(Gst.State.NULL)
