"""Serves GStreamer pipelines over RTSP, for tests.

argv[1]: JSON of {"mounts": {path: launch}, "protocols": ["tcp", "udp"], "auth": {"user", "password", "method"}, "records": bool}.
Prints the port that it listens on. Ends with its standard input.
"""
import json
import sys
import gi

gi.require_version('Gst', '1.0')
gi.require_version('GstRtsp', '1.0')
gi.require_version('GstRtspServer', '1.0')
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer

options = json.loads(sys.argv[1])
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address('127.0.0.1')
server.set_service(str(options.get('port', 0)))

if 'auth' in options:
    given = options['auth']
    method = {'basic': GstRtsp.RTSPAuthMethod.BASIC, 'digest': GstRtsp.RTSPAuthMethod.DIGEST}[given['method']]
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(method)
    token = GstRtspServer.RTSPToken()
    token.set_string(GstRtspServer.RTSP_TOKEN_MEDIA_FACTORY_ROLE, 'viewer')
    if given['method'] == 'basic':
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic(given['user'], given['password']), token)
    else:
        auth.add_digest(given['user'], given['password'], token)
    server.set_auth(auth)

PROTOCOLS = {'tcp': GstRtsp.RTSPLowerTrans.TCP, 'udp': GstRtsp.RTSPLowerTrans.UDP}
for path, launch in options['mounts'].items():
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(launch)
    factory.set_shared(True)
    if options.get('records', False):
        factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
    if 'protocols' in options:
        protocols = PROTOCOLS[options['protocols'][0]]
        for name in options['protocols'][1:]:
            protocols |= PROTOCOLS[name]
        factory.set_protocols(protocols)
    if 'auth' in options:
        factory.add_role_from_structure(Gst.Structure.new_from_string('viewer, media.factory.access=(boolean)true, media.factory.construct=(boolean)true')[0]
                                        if isinstance(Gst.Structure.new_from_string('x'), tuple)
                                        else Gst.Structure.new_from_string('viewer, media.factory.access=(boolean)true, media.factory.construct=(boolean)true'))
    server.get_mount_points().add_factory(path, factory)

server.attach(None)
print(server.get_bound_port(), flush=True)
loop = GLib.MainLoop()
GLib.io_add_watch(sys.stdin, GLib.PRIORITY_DEFAULT, GLib.IO_HUP | GLib.IO_IN, lambda *_: loop.quit())
loop.run()
