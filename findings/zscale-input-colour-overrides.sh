#!/usr/bin/env bash
# zscale, told all of its input's colour, still refuses frames that are not tagged.
#
# Expected: the options transferin, primariesin, matrixin and rangein say what the frames are, so that HDR whose decoder tags no frames (VP9
# has no room for transfer and primaries) can be made linear, which is the first step of tone mapping.
# What happens with ffmpeg 5.1.9 of Debian 12: "code 3074: no path between colorspaces". What of the output is not named is taken from the
# frame, where it is unknown, and not from the input as it was told: the pair of both is one that zimg does not convert. The same frames
# pass when the filter setparams tags them in front, and then none of the options is needed. Naming the output's matrix and primaries
# as well helps, too; one that is tagged never meets this, so a chain that works with H.265 fails with the same picture in VP9.
#
# Needs root for apt-get where ffmpeg is missing. Takes seconds. Exits non-zero if the behaviour is another.
set -euo pipefail

command -v ffmpeg > /dev/null || { apt-get -q update && apt-get -qy install ffmpeg; } > /dev/null
version=$(dpkg-query -W -f '${Version}' ffmpeg)
echo "ffmpeg $version, libzimg $(dpkg-query -W -f '${Version}' libzimg2)"
[[ $version == 7:5.1.* ]] || echo 'this was written for version 5.1: the behaviour may be another'

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# a grey picture in 10 bits, as an HDR source has it: in H.265 with its colour, in VP9 without
grey='color=size=64x64:rate=25,format=yuv420p10le,geq=lum=572:cb=512:cr=512'
ffmpeg -v error -f lavfi -i "$grey" -frames:v 1 -c:v libx265 \
  -x265-params log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc "$folder/tagged.hevc"
ffmpeg -v error -f lavfi -i "$grey" -frames:v 1 -c:v libvpx-vp9 "$folder/untagged.ivf"

told='transferin=smpte2084:primariesin=bt2020:matrixin=bt2020nc:rangein=limited'
tags='setparams=range=tv:color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc'
linear='transfer=linear:npl=100,format=gbrpf32le'

# prints ok, or what zscale said
convert() {
  if ffmpeg -v error -i "$folder/$1" -vf "$2" -f null - 2> "$folder/said"; then echo ok; else grep -o -m 1 'no path between colorspaces' "$folder/said"; fi
}

tagged=$(convert tagged.hevc "zscale=$told:$linear")
untagged=$(convert untagged.ivf "zscale=$told:$linear")
named=$(convert untagged.ivf "zscale=$told:matrix=bt2020nc:primaries=bt2020:$linear")
after=$(convert untagged.ivf "$tags,zscale=$linear")
echo "H.265, the input told by options:                       $tagged"
echo "VP9, the input told by options:                         $untagged"
echo "VP9, the input told, and the output's matrix as well:   $named"
echo "VP9, tagged by setparams:                               $after"
[[ $tagged == ok && $named == ok && $untagged == 'no path between colorspaces' && $after == ok ]]
